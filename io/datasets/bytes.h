// The bytes of an array: in memory, or read from their file when they are asked for. Files are never mapped: one that
// becomes shorter while it is in use is an error, not a signal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "core/base/files.h"

namespace trainctl {

// Arrays up to this many bytes are read into memory when they are opened.
inline constexpr std::int64_t largest_in_memory = 64 << 20;

class Bytes {
 public:
  Bytes() = default;
  Bytes(std::shared_ptr<const std::byte> memory, std::int64_t size) : memory_(std::move(memory)), size_(size) {}
  explicit Bytes(std::shared_ptr<const InputFile> file) : file_(std::move(file)), size_(file_->size()) {}

  std::int64_t size() const { return size_; }
  // Null where the bytes lie in the file.
  const std::byte* in_memory() const { return memory_.get(); }
  // Copies bytes [offset, offset + count), which the caller has checked to exist. Throws Error{data} where the file
  // fails.
  void read(std::int64_t offset, void* to, std::int64_t count) const;
  // Bytes [offset, offset + count), likewise; they share the owner.
  Bytes part(std::int64_t offset, std::int64_t count) const;
  // The same bytes in memory.
  Bytes loaded() const;

 private:
  std::shared_ptr<const std::byte> memory_;
  std::shared_ptr<const InputFile> file_;
  std::int64_t offset_ = 0;  // in the file
  std::int64_t size_ = 0;
};

// The role of files that hold data, for error messages.
inline constexpr FileRole data_role{
    ErrorKind::data, "configs of trainctl look for their data in the folder that TRAINCTL_DATA names (default: data)"};

// The content of a file, not yet in memory. Throws Error{data} where it is missing, empty, no regular file or not
// readable.
Bytes open_data(const std::string& path);

// The same bytes; they are loaded into memory where they are few enough.
Bytes loaded_if_small(const Bytes& bytes);

// The first bytes, at most `most`, in memory.
Bytes prefix(const Bytes& bytes, std::int64_t most);

}  // namespace trainctl
