// Reads the headers of tar archives.
#include "io/datasets/records/tar.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>
#include <string_view>

#include "core/base/format.h"
#include "io/datasets/arrays/inflate.h"
#include "io/datasets/dataset.h"

namespace trainctl {
namespace {

constexpr std::int64_t block = 512;
constexpr std::int64_t longest_extra = 1 << 20;  // bytes of a pax header or a long name

using Header = char[block];

std::string_view text_at(const Header& header, std::size_t offset, std::size_t max_bytes) {
  const std::string_view field(header + offset, max_bytes);
  return field.substr(0, field.find('\0'));
}

// Reads a number in octal digits or in GNU's binary format. Returns nullopt if it is neither, or negative.
std::optional<std::int64_t> number_at(const Header& header, std::size_t offset, std::size_t bytes) {
  if (static_cast<unsigned char>(header[offset]) == 0x80) {
    std::uint64_t value = 0;
    for (std::size_t i = 1; i < bytes; ++i) {
      if (value >> 55 != 0) return std::nullopt;
      value = value << 8 | static_cast<unsigned char>(header[offset + i]);
    }
    return static_cast<std::int64_t>(value);
  }
  std::string_view text = text_at(header, offset, bytes);
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 8);
  if (error != std::errc() || end != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

// Whether the sum of the header's bytes, with blanks instead of the checksum itself, is the header's checksum.
bool sum_is_right(const Header& header) {
  constexpr std::size_t sum_at = 148, sum_bytes = 8;
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < block; ++i) {
    sum += i >= sum_at && i < sum_at + sum_bytes ? ' ' : static_cast<unsigned char>(header[i]);
  }
  return number_at(header, sum_at, sum_bytes) == sum;
}

// The values in extended headers, which apply to the next file.
struct Extra {
  std::optional<std::string> name;
  std::optional<std::int64_t> size;
};

// Reads the records "LENGTH KEY=VALUE\n" of a pax header. Returns false if they are damaged.
bool read_pax(std::string_view text, Extra& extra) {
  while (!text.empty()) {
    std::size_t length = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), length);
    const std::size_t digits = static_cast<std::size_t>(end - text.data());
    if (error != std::errc() || length > text.size() || length < digits + 2 || *end != ' ') return false;
    const std::string_view record = text.substr(digits + 1, length - digits - 1);
    const std::size_t equals = record.find('=');
    if (equals == std::string_view::npos || record.back() != '\n') return false;
    const std::string_view key = record.substr(0, equals),
                           value = record.substr(equals + 1, record.size() - equals - 2);
    if (key == "path") extra.name = value;
    if (key == "size") {
      std::int64_t size = 0;
      const auto [stop, wrong] = std::from_chars(value.data(), value.data() + value.size(), size);
      if (wrong != std::errc() || stop != value.data() + value.size() || size < 0) return false;
      extra.size = size;
    }
    text.remove_prefix(length);
  }
  return true;
}

// The file name in a header, after ustar's prefix if there is one.
std::string name_in(const Header& header) {
  const std::string_view name = text_at(header, 0, 100);
  const bool posix = std::memcmp(header + 257, "ustar\0", 6) == 0;  // GNU's headers have blanks here, and no prefix
  const std::string_view prefix = posix ? text_at(header, 345, 155) : std::string_view();
  return prefix.empty() ? std::string(name) : format("{}/{}", prefix, name);
}

class TarReader {
 public:
  explicit TarReader(const std::string& path) : path_(path), bytes_(open_data(path)), cursor_(bytes_) {}

  void for_each(const VisitMember& visit) {
    if (is_gzip(bytes_)) data_error(path_, "is compressed", "unpack it with gunzip: samples are read in any order");
    Extra extra;
    bool ended = false;
    Header header;
    while (cursor_.left() > 0) {
      const std::int64_t at = cursor_.at();
      if (!cursor_.read(header, block)) refuse(at, "it is truncated within a header");
      ended = std::all_of(header, header + block, [](char byte) { return byte == 0; });
      if (ended) continue;
      if (!sum_is_right(header)) refuse(at, "the checksum of a header is wrong", at == 0);
      const std::optional<std::int64_t> size_field = number_at(header, 124, 12);
      const char type = header[156];
      const bool regular = type == '0' || type == '\0' || type == '7';
      // Links, devices, folders and pipes have no content; the size in their headers is ignored.
      const bool empty = type >= '1' && type <= '6';
      const std::int64_t size = regular && extra.size ? *extra.size : empty ? 0 : size_field.value_or(-1);
      if (size < 0) refuse(at, "a header has an impossible size");
      if (size > cursor_.left()) {
        refuse(at, format("it is truncated: a file has {} bytes, but only {} are left", size, cursor_.left()));
      }
      const std::int64_t begin = cursor_.at(), end = begin + size;
      if (type == 'x' || type == 'L') {
        read_extra(type, size, at, extra);
      } else if (regular) {
        visit(cursor_, {extra.name ? *extra.name : name_in(header), begin, size});
      }
      if (type != 'x' && type != 'L' && type != 'K' && type != 'g') extra = {};
      cursor_.seek(std::min(cursor_.size(), end + (block - end % block) % block));
    }
    if (!ended) refuse(cursor_.size(), "it is truncated: there is no end mark");
  }

 private:
  [[noreturn]] void refuse(std::int64_t at, const std::string& what, bool first = false) const {
    data_error(path_, format("at byte {}: {}", at, what),
               first ? "this may not be a tar archive" : "get the file again");
  }

  void read_extra(char type, std::int64_t size, std::int64_t at, Extra& extra) {
    if (size > longest_extra) refuse(at, format("a header has {} bytes, which is more than is supported", size));
    std::string text(static_cast<std::size_t>(size), '\0');
    cursor_.read(text.data(), size);
    if (type == 'L') {
      extra.name = text.substr(0, text.find('\0'));
    } else if (!read_pax(text, extra)) {
      refuse(at, "an extended header is damaged");
    }
  }

  const std::string& path_;
  Bytes bytes_;
  Cursor cursor_;
};

}  // namespace

void for_each_member(const std::string& path, const VisitMember& visit) { TarReader(path).for_each(visit); }

}  // namespace trainctl
