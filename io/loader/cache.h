// `cache: memory`: keeps prepared samples from their first reading on.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace trainctl {

// Rows of equal size, one for each sample. Any thread may fill or find any row. The system provides memory as rows are
// filled.
class SampleCache {
 public:
  // For samples [0, samples), of which `used` are read. Throws Error{resource} where `used` rows do not fit into the
  // free memory.
  SampleCache(std::int64_t samples, std::int64_t used, std::int64_t row_bytes);

  // The row of a sample; null while it is not filled.
  const std::byte* find(std::int64_t sample) const;
  // The row for the caller to fill and then publish(); null where another thread fills it or has filled it.
  std::byte* claim(std::int64_t sample);
  void publish(std::int64_t sample);

 private:
  enum State : std::uint8_t { empty, claimed, filled };

  struct Unmap {
    std::size_t bytes;
    void operator()(std::byte* data) const;
  };
  std::int64_t row_bytes_;
  std::unique_ptr<std::byte[], Unmap> rows_;
  std::unique_ptr<std::atomic<std::uint8_t>[]> states_;
};

}  // namespace trainctl
