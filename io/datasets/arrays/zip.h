// The part of the zip format that .npz files need: stored or deflated members, with 32-bit or 64-bit sizes.
//
// trainctl reads zip without a library: the reader reports a damaged archive as one error, which is tested, and reads
// the samples of a stored member at random offsets.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "io/datasets/arrays/bytes.h"

namespace trainctl {

struct ZipMember {
  std::string name;
  bool deflated = false;
  std::uint32_t crc = 0;
  std::int64_t offset = 0;  // offset of the stored bytes in the archive
  std::int64_t stored = 0;  // number of bytes in the archive
  std::int64_t size = 0;    // number of bytes after inflating
};

// Lists all members. Throws Error{data} if the file is not a zip archive, is damaged, uses another compression, or has
// more members than are supported.
std::vector<ZipMember> list_zip(const Bytes& archive, const std::string& path);

// Returns the first `max_bytes` inflated bytes of a member, or all if there are fewer. Throws Error{data}.
Bytes zip_prefix(const Bytes& archive, const ZipMember& member, std::int64_t max_bytes, const std::string& path);

// Returns all inflated bytes of a member and verifies their checksum. Large stored members are not read into memory.
// Throws Error{data} or, if they do not fit into the free memory, Error{resource}.
Bytes zip_bytes(const Bytes& archive, const ZipMember& member, const std::string& path);

}  // namespace trainctl
