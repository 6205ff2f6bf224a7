// Reads files again after they were written, and compares them with the memory that they were written from.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>

namespace trainctl {

// A part of a file's contents in memory.
using FilePiece = std::span<const std::byte>;

// Used by one thread at a time. It keeps the memory into which it reads, since fresh memory costs more time than
// reading.
class FileVerifier {
 public:
  // Reads a finished file again and compares it with its pieces, which follow each other in the file without gaps. The
  // bytes come from the disk or, on a network file system, from the server, where the file system can bypass the
  // kernel's copy of the file. Throws Error{resource} if the file differs or cannot be read; messages call it `shown`.
  void verify(const std::string& path, const std::string& shown, std::span<const FilePiece> pieces);

 private:
  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };

  bool is_equal(const std::string& path, const std::string& shown, std::span<const FilePiece> pieces);

  std::unique_ptr<std::byte, Free> buffer_;  // null before the first file
};

}  // namespace trainctl
