// Reads zip archives: the end record, the central directory, and the local headers of members.
#include "io/datasets/arrays/zip.h"

#include <zlib.h>

#include <algorithm>
#include <cstring>

#include "core/base/format.h"
#include "io/datasets/arrays/inflate.h"
#include "io/datasets/dataset.h"

namespace trainctl {
namespace {

// Reads the little-endian fields of an archive and checks every access. Keeps the bytes around the last field in a
// buffer, since fields are mostly read in order.
class Fields {
 public:
  Fields(const Bytes& archive, const std::string& path) : archive_(archive), path_(path) {}

  std::uint64_t at(std::int64_t offset, int bytes) const {
    std::uint64_t value = 0;
    std::memcpy(&value, find(offset, bytes), static_cast<std::size_t>(bytes));
    return value;
  }
  std::string text(std::int64_t offset, std::int64_t bytes) const {
    return {reinterpret_cast<const char*>(find(offset, bytes)), static_cast<std::size_t>(bytes)};
  }
  // Reads bytes that are far from the other fields, and leaves the buffer unchanged.
  std::string read_uncached(std::int64_t offset, std::int64_t bytes) const {
    if (offset < 0 || offset > archive_.size() - bytes) damaged();
    std::string text(static_cast<std::size_t>(bytes), '\0');
    archive_.read(offset, text.data(), bytes);
    return text;
  }
  [[noreturn]] void damaged() const { data_error(path_, "is a damaged zip archive", "get the file again"); }

 private:
  static constexpr std::int64_t window = 256 << 10;  // bytes in the buffer; more than the longest name

  const std::byte* find(std::int64_t offset, std::int64_t bytes) const {
    if (offset < 0 || offset > archive_.size() - bytes) damaged();
    if (offset < begin_ || offset + bytes > begin_ + static_cast<std::int64_t>(kept_.size())) {
      begin_ = std::max<std::int64_t>(0, offset - window / 2);
      kept_.resize(static_cast<std::size_t>(std::min(window, archive_.size() - begin_)));
      archive_.read(begin_, kept_.data(), static_cast<std::int64_t>(kept_.size()));
    }
    return kept_.data() + (offset - begin_);
  }

  const Bytes& archive_;
  const std::string& path_;
  mutable std::vector<std::byte> kept_;  // the archive's bytes from offset begin_ on
  mutable std::int64_t begin_ = 0;
};

constexpr std::uint64_t unknown32 = 0xFFFFFFFF;  // the value is in a 64-bit record instead

struct Directory {
  std::int64_t offset = 0, entries = 0;
};

Directory find_directory(const Fields& fields, const Bytes& archive, const std::string& path) {
  constexpr std::int64_t record = 22, longest_comment = 65535;
  const std::int64_t lowest = std::max<std::int64_t>(0, archive.size() - record - longest_comment);
  for (std::int64_t at = archive.size() - record; at >= lowest; --at) {
    if (fields.at(at, 4) != 0x06054b50) continue;
    Directory directory{static_cast<std::int64_t>(fields.at(at + 16, 4)),
                        static_cast<std::int64_t>(fields.at(at + 10, 2))};
    if (at >= 20 && fields.at(at - 20, 4) == 0x07064b50) {  // the locator of the 64-bit end record
      const auto end64 = static_cast<std::int64_t>(fields.at(at - 12, 8));
      if (fields.at(end64, 4) != 0x06064b50) fields.damaged();
      directory = {static_cast<std::int64_t>(fields.at(end64 + 48, 8)),
                   static_cast<std::int64_t>(fields.at(end64 + 32, 8))};
    }
    return directory;
  }
  data_error(path, "is not a zip archive, or is truncated", "get the file again");
}

// Replaces the values that are unknown32 by the 64-bit values of an extra field, which are in the same order.
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

// The member whose entry in the central directory begins at offset `at`.
ZipMember read_member(const Fields& fields, const Bytes& archive, std::int64_t at, std::int64_t name_length,
                      std::int64_t extra_length) {
  ZipMember member;
  member.name = fields.text(at + 46, name_length);
  const std::uint64_t method = fields.at(at + 10, 2);
  if (method != 0 && method != 8) fields.damaged();
  member.deflated = method == 8;
  member.crc = static_cast<std::uint32_t>(fields.at(at + 16, 4));
  // Size, stored size, and offset of the local header.
  std::uint64_t values[] = {fields.at(at + 24, 4), fields.at(at + 20, 4), fields.at(at + 42, 4)};
  read_zip64(fields, at + 46 + name_length, extra_length, values, 3);
  const auto local = static_cast<std::int64_t>(values[2]);
  constexpr std::int64_t local_bytes = 30;
  const std::string header = fields.read_uncached(local, local_bytes);
  std::uint16_t lengths[2] = {};  // lengths of the name and of the extra field before the content
  std::memcpy(lengths, header.data() + 26, sizeof lengths);
  if (!header.starts_with("PK\x03\x04")) fields.damaged();
  member.offset = local + local_bytes + lengths[0] + lengths[1];
  member.stored = static_cast<std::int64_t>(values[1]);
  member.size = static_cast<std::int64_t>(values[0]);
  const bool inside =
      member.stored >= 0 && member.offset <= archive.size() && member.stored <= archive.size() - member.offset;
  if (!inside || member.size < 0 || (!member.deflated && member.size != member.stored)) fields.damaged();
  return member;
}

}  // namespace

std::vector<ZipMember> list_zip(const Bytes& archive, const std::string& path) {
  const Fields fields(archive, path);
  constexpr std::int64_t max_members = 65536;
  const Directory directory = find_directory(fields, archive, path);
  if (directory.entries < 0 || directory.entries > max_members) {
    data_error(path, format("has {} members according to its directory", static_cast<std::uint64_t>(directory.entries)),
               "store only the arrays of one data set in it");
  }
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

Bytes zip_prefix(const Bytes& archive, const ZipMember& member, std::int64_t max_bytes, const std::string& path) {
  const Bytes stored = archive.slice(member.offset, member.stored);
  return member.deflated ? inflate_prefix(stored, Deflate::raw, max_bytes, path) : prefix(stored, max_bytes);
}

Bytes zip_bytes(const Bytes& archive, const ZipMember& member, const std::string& path) {
  constexpr std::int64_t piece = 1 << 20;
  const Bytes stored = archive.slice(member.offset, member.stored);
  const Bytes bytes =
      member.deflated ? inflate_exactly(stored, Deflate::raw, member.size, path) : loaded_if_small(stored);
  uLong crc = 0;
  for (std::int64_t at = 0; at < bytes.size(); at += piece) {
    const Bytes block = bytes.slice(at, std::min(piece, bytes.size() - at)).loaded();
    crc = crc32_z(crc, reinterpret_cast<const Bytef*>(block.in_memory()), static_cast<z_size_t>(block.size()));
  }
  if (crc != member.crc) data_error(path, "its checksum is wrong: the archive is damaged", "get the file again");
  return bytes;
}

}  // namespace trainctl
