// Reads bytes piece by piece, from memory or from a file through a small buffer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "io/datasets/arrays/bytes.h"

namespace trainctl {

class Cursor {
 public:
  explicit Cursor(Bytes bytes) : bytes_(std::move(bytes)) {}

  // The position in bytes, and the number of bytes from there to the end.
  std::int64_t at() const { return at_; }
  std::int64_t size() const { return bytes_.size(); }
  std::int64_t left() const { return size() - at_; }
  // Moves to a position in [0, size()].
  void seek(std::int64_t at);
  // Copies the next `count` bytes and moves past them. Returns false, without moving, if fewer bytes are left. Throws
  // Error{data} if reading the file fails.
  bool read(void* to, std::int64_t count);

 private:
  Bytes bytes_;
  std::int64_t at_ = 0;
  std::vector<std::byte> buffer_;  // bytes [first_, first_ + buffer_.size()) of a file
  std::int64_t first_ = 0;
};

}  // namespace trainctl
