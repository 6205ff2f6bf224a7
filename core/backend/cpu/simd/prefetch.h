// Loads rows into the cache before they are used, in portions between other work.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace trainctl::cpu {

class Prefetch {
 public:
  void clear() { count_ = next_ = 0; }
  // Adds `rows` rows of `bytes` bytes that are `step` bytes apart. It may be called 8 times after clear().
  void add(const void* first, std::int64_t rows, std::int64_t step, std::int64_t bytes) {
    blocks_[count_++] = {static_cast<const std::byte*>(first), rows, step, bytes};
  }
  // The bytes of all rows that are not loaded yet.
  std::int64_t bytes() const {
    std::int64_t sum = 0;
    for (std::size_t i = next_; i < count_; ++i) sum += blocks_[i].rows * blocks_[i].bytes;
    return sum;
  }
  // Begins to load the next rows, about `bytes` bytes.
  void load(std::int64_t bytes) {
    while (bytes > 0 && next_ < count_) {
      Block& block = blocks_[next_];
      for (; bytes > 0 && block.rows > 0; --block.rows, block.first += block.step, bytes -= block.bytes) {
        for (std::int64_t i = 0; i < block.bytes; i += line) __builtin_prefetch(block.first + i, 0, 2);
      }
      if (block.rows == 0) ++next_;
    }
  }

 private:
  static constexpr std::int64_t line = 64;
  static constexpr std::size_t most_blocks = 8;
  struct Block {
    const std::byte* first;
    std::int64_t rows, step, bytes;
  };
  std::array<Block, most_blocks> blocks_{};
  std::size_t count_ = 0, next_ = 0;
};

}  // namespace trainctl::cpu
