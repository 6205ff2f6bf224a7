// Reads bytes from memory and from files.
#include "io/datasets/arrays/bytes.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "io/datasets/dataset.h"

namespace trainctl {

void Bytes::read(std::int64_t offset, void* to, std::int64_t count) const {
  require(offset >= 0 && count >= 0 && offset <= size_ - count, "the bytes do not exist");
  if (memory_) {
    std::memcpy(to, memory_.get() + offset, static_cast<std::size_t>(count));
  } else if (count > 0) {
    file_->read(offset_ + offset, to, count);
  }
}

Bytes Bytes::slice(std::int64_t offset, std::int64_t count) const {
  require(offset >= 0 && count >= 0 && offset <= size_ - count, "the bytes do not exist");
  Bytes bytes = *this;
  if (memory_) {
    bytes.memory_ = {memory_, memory_.get() + offset};
  } else {
    bytes.offset_ += offset;
  }
  bytes.size_ = count;
  return bytes;
}

Bytes Bytes::loaded() const {
  if (memory_) return *this;
  std::shared_ptr<std::byte[]> memory = std::make_shared_for_overwrite<std::byte[]>(static_cast<std::size_t>(size_));
  read(0, memory.get(), size_);
  return {std::shared_ptr<const std::byte>(memory, memory.get()), size_};
}

Bytes open_data(const std::string& path) {
  Bytes bytes(std::make_shared<const InputFile>(path, data_role));
  if (bytes.size() == 0) data_error(path, "is empty", "get the file again");
  return bytes;
}

Bytes loaded_if_small(const Bytes& bytes) { return bytes.size() <= largest_in_memory ? bytes.loaded() : bytes; }

Bytes prefix(const Bytes& bytes, std::int64_t max_bytes) {
  return bytes.slice(0, std::min(max_bytes, bytes.size())).loaded();
}

}  // namespace trainctl
