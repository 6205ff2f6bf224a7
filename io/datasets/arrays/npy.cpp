// Reads .npy files and the members of .npz archives.
#include "io/datasets/arrays/npy.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "core/base/file_names.h"
#include "core/base/files.h"
#include "core/base/format.h"
#include "io/datasets/arrays/fortran_order.h"
#include "io/datasets/arrays/inflate.h"
#include "io/datasets/arrays/zip.h"

namespace trainctl {
namespace {

constexpr std::int64_t longest_npy_header = 1 << 16;
constexpr std::pair<std::string_view, ElementType> element_types[] = {
    {"u1", ElementType::uint8},   {"b1", ElementType::uint8},   {"i1", ElementType::int8},
    {"u2", ElementType::uint16},  {"i2", ElementType::int16},   {"u4", ElementType::uint32},
    {"i4", ElementType::int32},   {"u8", ElementType::uint64},  {"i8", ElementType::int64},
    {"f4", ElementType::float32}, {"f8", ElementType::float64}, {"f2", ElementType::float16},
};

// Returns the member of that name; if there are several, the last one, like NumPy. Otherwise, if exactly one member has
// a name that differs only in case (x is often stored as X), returns that member. Returns null if there is no such
// member.
const ZipMember* find(const std::vector<ZipMember>& members, const std::string& name) {
  std::map<std::string, const ZipMember*> last;
  for (const ZipMember& member : members) last[member.name] = &member;
  std::vector<std::string> names;
  for (const auto& [known, member] : last) names.push_back(known);
  const std::optional<std::size_t> found = find_name(names, name);
  return found ? last[names[*found]] : nullptr;
}

// The names of at most eight members, for messages.
std::string names_of(const std::vector<ZipMember>& members) {
  std::string names;
  for (std::size_t i = 0; i < std::min<std::size_t>(8, members.size()); ++i) {
    names += (i > 0 ? ", " : "") + members[i].name.substr(0, 60);
  }
  return names.empty() ? "none" : names;
}

// The text after `'key':` in the header's dictionary, to the end of the header.
std::string_view after_key(std::string_view header, std::string_view key, const std::string& path) {
  for (char quote : {'\'', '"'}) {
    const std::string pattern = format("{0}{1}{0}", quote, key);
    const std::size_t at = header.find(pattern);
    if (at == std::string_view::npos) continue;
    std::string_view rest = header.substr(at + pattern.size());
    rest.remove_prefix(std::min(rest.find_first_not_of(" :"), rest.size()));
    return rest;
  }
  data_error(path, format("its .npy header has no '{}'", key));
}

// How elements of an unsupported type are stored as numbers; `kind` is NumPy's letter for the kind of type.
const char* remedy_for_type(char kind) {
  switch (kind) {
    case 'U':
    case 'S':
      return "store words as class numbers: numpy.unique(y, return_inverse=True)[1]; or numbers in text with "
             "astype('float32')";
    case 'O':
      return "make it an array of numbers: numpy.array(x.tolist(), dtype='float32'), in which all rows have the same "
             "length";
    case 'M':
    case 'm':
      return "store times as numbers: (x - x.min()) / numpy.timedelta64(1, 's')";
    case 'c':
      return "store the real and the imaginary part as two values: numpy.stack([x.real, x.imag], -1)";
    default:
      return "save it as float16, float32, float64, uint8 or another integer type";
  }
}

void parse_type(std::string_view text, Array& array) {
  if (text.starts_with('[')) {
    data_error(array.path, "is a structured array, whose elements have several fields",
               "save numpy.lib.recfunctions.structured_to_unstructured(x), or each field as an array");
  }
  const std::string_view quoted = text.substr(0, text.find_first_of(",}", 1));
  if (text.size() > 4 && (text[0] == '\'' || text[0] == '"')) {
    const char order = text[1];
    for (const auto& [name, type] : element_types) {
      if (text.substr(2, 2) != name || text[4] != text[0]) continue;
      if (order != '<' && order != '>' && order != '|' && order != '=') break;
      array.type = type;
      array.big_endian = order == '>';
      return;
    }
  }
  data_error(array.path, format("holds elements of type {}, which is not supported", quoted),
             remedy_for_type(quoted.size() > 2 ? quoted[2] : ' '));
}

void parse_shape(std::string_view text, Array& array) {
  const std::size_t end = text.find(')');
  if (text.empty() || text[0] != '(' || end == std::string_view::npos)
    data_error(array.path, "its .npy header has no shape");
  std::vector<std::int64_t> sizes;
  const char* at = text.data() + 1;
  const char* stop = text.data() + end;
  while (at < stop) {
    if (*at == ' ' || *at == ',') {
      ++at;
      continue;
    }
    std::int64_t size = 0;
    const auto [next, error] = std::from_chars(at, stop, size);
    if (error != std::errc() || size < 0 || sizes.size() == 32)
      data_error(array.path, "its .npy header has a damaged shape");
    sizes.push_back(size);
    at = next;
  }
  array.shape = Shape(std::move(sizes));
}

// The position and the order of the values in a file.
struct StoredValues {
  std::int64_t start = 0;  // bytes before them
  bool fortran_order = false;
};

// Sets the type and shape of the array from the first bytes of a file.
StoredValues parse_npy_header(const Bytes& head, Array& array) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(head.in_memory());
  if (head.size() < 12 || std::memcmp(bytes, "\x93NUMPY", 6) != 0) data_error(array.path, "is not an .npy file");
  const int version = bytes[6], minor = bytes[7];
  if (version < 1 || version > 3 || minor != 0) {
    data_error(array.path,
               format("is an .npy file of version {}.{}; only versions 1.0, 2.0 and 3.0 are supported", version, minor),
               "save it again with numpy.save");
  }
  const bool short_length = version == 1;
  const std::int64_t start = short_length ? 10 : 12;
  std::int64_t length = bytes[8] | bytes[9] << 8;
  if (!short_length) length |= std::int64_t{bytes[10]} << 16 | std::int64_t{bytes[11]} << 24;
  if (length > longest_npy_header - start || start + length > head.size())
    data_error(array.path, "is truncated within its header");
  const std::string_view header(reinterpret_cast<const char*>(bytes) + start, static_cast<std::size_t>(length));
  const bool fortran_order = after_key(header, "fortran_order", array.path).substr(0, 4) == "True";
  parse_type(after_key(header, "descr", array.path), array);
  parse_shape(after_key(header, "shape", array.path), array);
  return {start + length, fortran_order};
}

// The values of the array, in C order.
Bytes values_of(const Array& array, const Bytes& stored, bool fortran_order) {
  return fortran_order ? in_c_order(stored, array.shape, array.element_bytes(), array.path) : stored;
}

}  // namespace

std::string npy_header(std::string_view type, const Shape& shape) {
  std::string sizes;
  for (const std::int64_t size : shape.sizes()) sizes += (sizes.empty() ? "" : ", ") + std::to_string(size);
  if (shape.rank() == 1) sizes += ",";  // Python's tuple of one number
  std::string text = format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", type, sizes);
  constexpr std::size_t before = 10, alignment = 64;
  text.resize((before + text.size()) / alignment * alignment + alignment - before, ' ');
  text.back() = '\n';
  const auto size = static_cast<std::uint16_t>(text.size());
  return std::string("\x93NUMPY\x01\x00", 8) + static_cast<char>(size & 255) + static_cast<char>(size >> 8) + text;
}

std::optional<std::size_t> find_name(const std::vector<std::string>& names, const std::string& name) {
  std::optional<std::size_t> other_case;
  int count = 0;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i] == name) return i;
    if (lower_case(names[i]) != lower_case(name)) continue;
    other_case = i;
    ++count;
  }
  return count == 1 ? other_case : std::nullopt;
}

std::string npy_in_folder(const std::string& folder, const std::string& name) {
  std::vector<std::string> names;
  for (const FolderEntry& entry : list_folder(folder)) names.push_back(entry.name);
  const std::optional<std::size_t> found = find_name(names, name + ".npy");
  return found ? folder + "/" + names[*found] : "";
}

Array read_npy(const std::string& path) {
  Array array;
  array.path = path;
  Bytes file = open_data(path);
  const bool gzip = is_gzip(file);
  const auto [start, fortran_order] = parse_npy_header(
      gzip ? inflate_prefix(file, Deflate::gzip, longest_npy_header, path) : prefix(file, longest_npy_header), array);
  const std::int64_t values = checked_bytes(array.shape, array.element_bytes(), path);
  if (gzip) file = inflate_exactly(file, Deflate::gzip, start + values, path);
  if (file.size() - start != values) {
    data_error(path, format("has {} bytes of values, but its header says {}", file.size() - start, values),
               "get the file again");
  }
  array.bytes = loaded_if_small(values_of(array, file.slice(start, values), fortran_order));
  return array;
}

bool has_npz_array(const std::string& path, const std::string& name) {
  return find(list_zip(open_data(path), path), name + ".npy") != nullptr;
}

Array read_npz(const std::string& path, const std::string& name) {
  const Bytes file = open_data(path);
  const std::vector<ZipMember> members = list_zip(file, path);
  const ZipMember* member = find(members, name + ".npy");
  if (!member) {
    data_error(path, format("has no array '{}'; it has {}", name, names_of(members)),
               "save samples as x and targets as y, or as x_train, y_train, x_test and y_test");
  }
  Array array;
  array.path = path + ":" + name;
  const auto [start, fortran_order] =
      parse_npy_header(zip_prefix(file, *member, longest_npy_header, array.path), array);
  const std::int64_t values = checked_bytes(array.shape, array.element_bytes(), array.path);
  if (member->size - start != values) {
    data_error(array.path, format("has {} bytes of values, but its header says {}", member->size - start, values));
  }
  array.bytes = values_of(array, zip_bytes(file, *member, array.path).slice(start, values), fortran_order);
  return array;
}

}  // namespace trainctl
