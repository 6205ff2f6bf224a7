// The bytes of an array, in memory or read from a file on demand. Files are not mapped into memory: a file that shrinks
// while it is in use causes an Error, not a signal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "core/base/files.h"

namespace trainctl {

// Arrays of at most this number of bytes are read into memory when they are opened.
inline constexpr std::int64_t largest_in_memory = 64 << 20;

class Bytes {
 public:
  Bytes() = default;
  Bytes(std::shared_ptr<const std::byte> memory, std::int64_t size) : memory_(std::move(memory)), size_(size) {}
  explicit Bytes(std::shared_ptr<const InputFile> file) : file_(std::move(file)), size_(file_->size()) {}

  std::int64_t size() const { return size_; }
  // The bytes, or null if they are not in memory but in a file.
  const std::byte* in_memory() const { return memory_.get(); }
  // Copies bytes [offset, offset + count) to `to`; the caller must have checked that they exist. Throws Error{data} if
  // reading the file fails.
  void read(std::int64_t offset, void* to, std::int64_t count) const;
  // Returns bytes [offset, offset + count), which must exist, as an object that shares the memory or the file.
  Bytes slice(std::int64_t offset, std::int64_t count) const;
  // Returns the same bytes, read into memory. Throws Error{data} if reading the file fails.
  Bytes loaded() const;

 private:
  std::shared_ptr<const std::byte> memory_;
  std::shared_ptr<const InputFile> file_;
  std::int64_t offset_ = 0;  // offset of the first byte in the file
  std::int64_t size_ = 0;
};

// The kind of errors of data files, and the remedy if a file is missing.
inline constexpr FileRole data_role{
    ErrorKind::data, "configs of trainctl look for their data in the folder that TRAINCTL_DATA names (default: data)"};

// Opens a file without reading it into memory. Throws Error{data} if the file is missing, empty, not a regular file or
// not readable.
Bytes open_data(const std::string& path);

// Returns the same bytes, read into memory if there are at most largest_in_memory.
Bytes loaded_if_small(const Bytes& bytes);

// Returns the first `max_bytes` bytes, or all if there are fewer, in memory.
Bytes prefix(const Bytes& bytes, std::int64_t max_bytes);

}  // namespace trainctl
