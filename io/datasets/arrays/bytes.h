// The bytes of an array, in memory or read from a file on demand. Files are not mapped into memory: a file that shrinks
// while it is in use gives an Error, not a signal.
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
  // The bytes, or null where they are not in memory but in a file.
  const std::byte* in_memory() const { return memory_.get(); }
  // Copies bytes [offset, offset + count) to `to`; the caller must have checked that they exist. Throws Error{data}
  // where reading the file fails.
  void read(std::int64_t offset, void* to, std::int64_t count) const;
  // Bytes [offset, offset + count), which must exist, as an object that shares the memory or the file.
  Bytes part(std::int64_t offset, std::int64_t count) const;
  // The same bytes, read into memory. Throws Error{data} where reading the file fails.
  Bytes loaded() const;

 private:
  std::shared_ptr<const std::byte> memory_;
  std::shared_ptr<const InputFile> file_;
  std::int64_t offset_ = 0;  // of the first byte in the file
  std::int64_t size_ = 0;
};

// The role of data files, for error messages.
inline constexpr FileRole data_role{
    ErrorKind::data, "configs of trainctl look for their data in the folder that TRAINCTL_DATA names (default: data)"};

// The content of a file, not yet read into memory. Throws Error{data} where the file is missing, empty, not a regular
// file or not readable.
Bytes open_data(const std::string& path);

// The same bytes, read into memory where there are at most largest_in_memory.
Bytes loaded_if_small(const Bytes& bytes);

// The first `most` bytes, or all where there are fewer, in memory.
Bytes prefix(const Bytes& bytes, std::int64_t most);

}  // namespace trainctl
