// Reads the bytes of an HDF5 file as consecutive fields.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "io/datasets/arrays/bytes.h"

namespace trainctl {

// The address that HDF5 writes for a block that does not exist.
inline constexpr std::uint64_t undefined_address = ~std::uint64_t{0};

// The file, and limits for the work of reading it.
class Hdf5Source {
 public:
  // `shown` is the file's name in messages.
  Hdf5Source(Bytes file, std::string shown);

  const Bytes& bytes() const { return file_; }
  std::uint64_t size() const { return static_cast<std::uint64_t>(file_.size()); }
  // Counts a block that is read, since blocks of a damaged file may refer to each other in a cycle. Throws Error{data}
  // if there are too many.
  void count_block();
  // Counts bytes of headers, names and texts that are read. Objects may share them, so that a small file could need
  // much memory: throws Error{data} if their sum exceeds a few times the file's size.
  void spend(std::uint64_t bytes) const;

  // Throw Error{data}: the file is damaged, or has a feature that is not supported.
  [[noreturn]] void damaged(const std::string& what) const;
  [[noreturn]] void unknown(const std::string& what) const;

 private:
  Bytes file_;
  std::string shown_;
  std::int64_t blocks_ = 0;
  mutable std::uint64_t left_;  // bytes of headers, names and texts that may still be read
};

// Reads consecutive little-endian fields of a range of the file, or of bytes that were already read. The source must
// outlive the object.
class Hdf5Fields {
 public:
  // Throws Error{data} if the range is not in the file. All functions throw Error{data} if too few bytes are left.
  Hdf5Fields(const Hdf5Source& source, std::uint64_t offset, std::uint64_t size);
  Hdf5Fields(const Hdf5Source& source, std::string bytes) : source_(&source), bytes_(std::move(bytes)) {}

  std::size_t left() const { return bytes_.size() - at_; }
  std::uint64_t number(std::size_t bytes);
  std::string text(std::size_t bytes);
  Hdf5Fields subrange(std::size_t bytes) { return {*source_, text(bytes)}; }
  void skip(std::size_t bytes);  // skips fewer bytes if fewer are left
  void expect(const std::string& signature);

 private:
  const Hdf5Source* source_;
  std::string bytes_;
  std::size_t at_ = 0;
};

}  // namespace trainctl
