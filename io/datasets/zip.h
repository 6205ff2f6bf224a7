// Zip archives, as far as .npz files need them: members stored or deflated, also with 64-bit sizes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "io/datasets/bytes.h"

namespace trainctl {

struct ZipMember {
  std::string name;
  bool deflated = false;
  std::uint32_t crc = 0;
  std::int64_t offset = 0;  // of the stored bytes in the archive
  std::int64_t stored = 0;  // bytes in the archive
  std::int64_t size = 0;    // bytes once inflated
};

// All members. Throws Error{data}: no zip archive, a damaged one, one compressed in another way, or one of more members
// than arrays are kept in.
std::vector<ZipMember> list_zip(const Bytes& archive, const std::string& path);

// The first bytes of a member, at most `most`.
Bytes zip_prefix(const Bytes& archive, const ZipMember& member, std::int64_t most, const std::string& path);

// All bytes of a member, their check sum verified. Large stored members stay where they lie.
Bytes zip_bytes(const Bytes& archive, const ZipMember& member, const std::string& path);

}  // namespace trainctl
