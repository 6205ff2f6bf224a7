// The bytes of an HDF5 file that is being read, and consecutive fields of its parts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "io/datasets/arrays/bytes.h"

namespace trainctl {

// The file, and a bound on the work of reading it.
class Hdf5Source {
 public:
  // `shown` is the file's name in messages.
  Hdf5Source(Bytes file, std::string shown);

  const Bytes& bytes() const { return file_; }
  std::uint64_t size() const { return static_cast<std::uint64_t>(file_.size()); }
  // Counts a part that is read: a file whose parts refer to each other in a circle never ends. Throws Error{data}.
  void count_block();
  // Counts bytes of headers, names and texts that are read, also if they lie in several objects at once: all of them
  // together are a few times the file's size, so that a small file cannot take much memory. Throws Error{data}.
  void spend(std::uint64_t bytes) const;

  // Throw Error{data}: the file is damaged; the file has a layout that is not read here.
  [[noreturn]] void damaged(const std::string& what) const;
  [[noreturn]] void unknown(const std::string& what) const;

 private:
  Bytes file_;
  std::string shown_;
  std::int64_t blocks_ = 0;
  mutable std::uint64_t left_;  // bytes that may still be read of headers, names and texts
};

// Consecutive little-endian fields of a part of the file, or of bytes that were read. The source must outlive it.
class Hdf5Fields {
 public:
  // Throws Error{data} if the part lies outside the file, as do all functions if the part has too few bytes.
  Hdf5Fields(const Hdf5Source& source, std::uint64_t offset, std::uint64_t size);
  Hdf5Fields(const Hdf5Source& source, std::string bytes) : source_(&source), bytes_(std::move(bytes)) {}

  std::size_t left() const { return bytes_.size() - at_; }
  std::uint64_t number(std::size_t bytes);
  std::string text(std::size_t bytes);
  Hdf5Fields part(std::size_t bytes) { return {*source_, text(bytes)}; }
  void skip(std::size_t bytes);  // as many as there are
  void expect(const std::string& signature);

 private:
  const Hdf5Source* source_;
  std::string bytes_;
  std::size_t at_ = 0;
};

}  // namespace trainctl
