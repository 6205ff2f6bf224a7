// Reading zip archives: the end record, the central directory, a member's local header.
#include "io/datasets/zip.h"

#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <string_view>

#include "core/base/format.h"
#include "io/datasets/dataset.h"

namespace trainctl {
namespace {

// Little-endian fields of an archive, every access checked.
class Fields {
 public:
  Fields(const Bytes& archive, const std::string& path) : archive_(archive), path_(path) {}

  std::uint64_t at(std::int64_t offset, int bytes) const {
    if (offset < 0 || offset > archive_.size - bytes)
      data_error(path_, "is a damaged zip archive", "get the file again");
    std::uint64_t value = 0;
    std::memcpy(&value, archive_.begin() + offset, static_cast<std::size_t>(bytes));
    return value;
  }
  std::string_view text(std::int64_t offset, std::int64_t bytes) const {
    if (bytes > 0) at(offset, 1), at(offset + bytes - 1, 1);
    return {reinterpret_cast<const char*>(archive_.begin()) + offset, static_cast<std::size_t>(bytes)};
  }
  [[noreturn]] void damaged() const { data_error(path_, "is a damaged zip archive", "get the file again"); }

 private:
  const Bytes& archive_;
  const std::string& path_;
};

constexpr std::uint64_t unknown32 = 0xFFFFFFFF;  // the true value stands in a 64-bit record

struct Directory {
  std::int64_t offset = 0, entries = 0;
};

Directory find_directory(const Fields& fields, const Bytes& archive, const std::string& path) {
  constexpr std::int64_t record = 22, longest_comment = 65535;
  const std::int64_t lowest = std::max<std::int64_t>(0, archive.size - record - longest_comment);
  for (std::int64_t at = archive.size - record; at >= lowest; --at) {
    if (fields.at(at, 4) != 0x06054b50) continue;
    Directory directory{static_cast<std::int64_t>(fields.at(at + 16, 4)),
                        static_cast<std::int64_t>(fields.at(at + 10, 2))};
    if (at >= 20 && fields.at(at - 20, 4) == 0x07064b50) {  // a locator of the 64-bit end record
      const auto end64 = static_cast<std::int64_t>(fields.at(at - 12, 8));
      if (fields.at(end64, 4) != 0x06064b50) fields.damaged();
      directory = {static_cast<std::int64_t>(fields.at(end64 + 48, 8)),
                   static_cast<std::int64_t>(fields.at(end64 + 32, 8))};
    }
    return directory;
  }
  data_error(path, "is no zip archive, or a truncated one", "get the file again");
}

// Puts the 64-bit values of an extra field in the place of those that are marked unknown, in the order of the format.
void read_zip64(const Fields& fields, std::int64_t extra, std::int64_t length, std::uint64_t* values, int count) {
  for (std::int64_t at = extra; at + 4 <= extra + length; at += 4 + static_cast<std::int64_t>(fields.at(at + 2, 2))) {
    if (fields.at(at, 2) != 1) continue;
    std::int64_t from = at + 4;
    for (int i = 0; i < count; ++i) {
      if (values[i] != unknown32) continue;
      values[i] = fields.at(from, 8);
      from += 8;
    }
    return;
  }
}

// The member whose entry of the central directory begins at `at`.
ZipMember read_member(const Fields& fields, const Bytes& archive, std::int64_t at, std::int64_t name_length,
                      std::int64_t extra_length) {
  ZipMember member;
  member.name = fields.text(at + 46, name_length);
  const std::uint64_t method = fields.at(at + 10, 2);
  if (method != 0 && method != 8) fields.damaged();
  member.deflated = method == 8;
  member.crc = static_cast<std::uint32_t>(fields.at(at + 16, 4));
  // size, stored size, offset of the local header
  std::uint64_t values[] = {fields.at(at + 24, 4), fields.at(at + 20, 4), fields.at(at + 42, 4)};
  read_zip64(fields, at + 46 + name_length, extra_length, values, 3);
  const auto local = static_cast<std::int64_t>(values[2]);
  if (fields.at(local, 4) != 0x04034b50) fields.damaged();
  member.offset = local + 30 + static_cast<std::int64_t>(fields.at(local + 26, 2) + fields.at(local + 28, 2));
  member.stored = static_cast<std::int64_t>(values[1]);
  member.size = static_cast<std::int64_t>(values[0]);
  const bool inside =
      member.stored >= 0 && member.offset <= archive.size && member.stored <= archive.size - member.offset;
  if (!inside || member.size < 0 || (!member.deflated && member.size != member.stored)) fields.damaged();
  return member;
}

}  // namespace

std::vector<ZipMember> list_zip(const Bytes& archive, const std::string& path) {
  const Fields fields(archive, path);
  const Directory directory = find_directory(fields, archive, path);
  std::vector<ZipMember> members;
  std::int64_t at = directory.offset;
  for (std::int64_t entry = 0; entry < directory.entries; ++entry) {
    if (fields.at(at, 4) != 0x02014b50) fields.damaged();
    const auto name_length = static_cast<std::int64_t>(fields.at(at + 28, 2));
    const auto extra_length = static_cast<std::int64_t>(fields.at(at + 30, 2));
    const auto comment_length = static_cast<std::int64_t>(fields.at(at + 32, 2));
    members.push_back(read_member(fields, archive, at, name_length, extra_length));
    at += 46 + name_length + extra_length + comment_length;
  }
  return members;
}

Bytes zip_prefix(const Bytes& archive, const ZipMember& member, std::int64_t most, const std::string& path) {
  const Bytes stored = archive.part(member.offset, member.stored);
  if (member.deflated) return inflate_prefix(stored, Deflate::raw, most, path);
  return stored.part(0, std::min(most, stored.size));
}

Bytes zip_bytes(const Bytes& archive, const ZipMember& member, const std::string& path) {
  Bytes bytes = archive.part(member.offset, member.stored);
  if (member.deflated) bytes = inflate_exactly(bytes, Deflate::raw, member.size, path);
  const uLong crc = crc32_z(0, reinterpret_cast<const Bytef*>(bytes.begin()), static_cast<z_size_t>(bytes.size));
  if (crc != member.crc) data_error(path, "its check sum is wrong: the archive is damaged", "get the file again");
  return bytes;
}

}  // namespace trainctl
