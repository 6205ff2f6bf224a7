// Reads a file again after it was written, and compares it with the memory that it was written from.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace trainctl {

// A part of a file's contents in memory.
using FilePiece = std::span<const std::byte>;

// Reads a finished file again and compares it with its pieces, which follow each other in the file without gaps. The
// bytes come from the disk or, on a network file system, from the server, where the file system can bypass the kernel's
// copy of the file. Throws Error{resource} if the file differs or cannot be read; messages call it `shown`.
void verify_file(const std::string& path, const std::string& shown, std::span<const FilePiece> pieces);

}  // namespace trainctl
