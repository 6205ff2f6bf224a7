// Reads small pieces of a file through a buffer.
#include "io/datasets/cursor.h"

#include <algorithm>
#include <cstring>

#include "core/base/error.h"

namespace trainctl {

void Cursor::seek(std::int64_t at) {
  require(at >= 0 && at <= size(), "the position is outside the bytes");
  at_ = at;
}

bool Cursor::read(void* to, std::int64_t count) {
  constexpr std::int64_t piece = 16384;
  if (count > left()) return false;
  if (bytes_.in_memory() != nullptr || count > piece) {
    bytes_.read(at_, to, count);
  } else {
    if (at_ < first_ || at_ + count > first_ + std::ssize(buffer_)) {
      first_ = at_;
      buffer_.resize(static_cast<std::size_t>(std::min(piece, left())));
      bytes_.read(first_, buffer_.data(), std::ssize(buffer_));
    }
    std::memcpy(to, buffer_.data() + (at_ - first_), static_cast<std::size_t>(count));
  }
  at_ += count;
  return true;
}

}  // namespace trainctl
