// The cache in memory: its rows and their states.
#include "io/loader/cache/cache.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <limits>

#include "core/base/error.h"
#include "core/base/format.h"
#include "core/base/memory.h"
#include "core/base/table.h"

namespace trainctl {
namespace {

class MemoryCache final : public SampleCache {
 public:
  MemoryCache(std::int64_t samples, std::int64_t used, std::int64_t row_bytes);

  const std::byte* find(std::int64_t sample, std::vector<std::byte>& memory) override;
  std::byte* claim(std::int64_t sample, std::vector<std::byte>& memory) override;
  void publish(std::int64_t sample, std::vector<std::byte>& memory) override;

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

void MemoryCache::Unmap::operator()(std::byte* data) const { munmap(data, bytes); }

MemoryCache::MemoryCache(std::int64_t samples, std::int64_t used, std::int64_t row_bytes)
    : row_bytes_(row_bytes), rows_(nullptr, Unmap{0}) {
  std::int64_t bytes = 0;
  const bool overflow = __builtin_mul_overflow(samples, row_bytes, &bytes);
  const std::int64_t available = available_memory().value_or(std::numeric_limits<std::int64_t>::max());
  if (overflow || used * row_bytes > available) {
    throw Error(ErrorKind::resource,
                format("`cache: memory` needs {:.1f} GB for {}, but only {:.1f} GB are free",
                       static_cast<double>(used) * static_cast<double>(row_bytes) / 1e9, counted(used, "sample"),
                       static_cast<double>(available) / 1e9),
                "leave `cache` out: the samples are then read again in every epoch");
  }
  const auto size = static_cast<std::size_t>(std::max<std::int64_t>(1, bytes));
  void* address = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (address == MAP_FAILED)
    throw Error(ErrorKind::resource, format("there is no memory for a cache of {} bytes", bytes));
  rows_ = {static_cast<std::byte*>(address), Unmap{size}};
  states_ = std::make_unique<std::atomic<std::uint8_t>[]>(static_cast<std::size_t>(samples));
}

const std::byte* MemoryCache::find(std::int64_t sample, std::vector<std::byte>&) {
  if (states_[static_cast<std::size_t>(sample)].load(std::memory_order_acquire) != filled) return nullptr;
  return rows_.get() + sample * row_bytes_;
}

std::byte* MemoryCache::claim(std::int64_t sample, std::vector<std::byte>&) {
  std::uint8_t expected = empty;
  const bool mine =
      states_[static_cast<std::size_t>(sample)].compare_exchange_strong(expected, claimed, std::memory_order_relaxed);
  return mine ? rows_.get() + sample * row_bytes_ : nullptr;
}

void MemoryCache::publish(std::int64_t sample, std::vector<std::byte>&) {
  states_[static_cast<std::size_t>(sample)].store(filled, std::memory_order_release);
}

}  // namespace

std::unique_ptr<SampleCache> memory_cache(std::int64_t samples, std::int64_t used, std::int64_t row_bytes) {
  return std::make_unique<MemoryCache>(samples, used, row_bytes);
}

}  // namespace trainctl
