// Reading HDF5 files, every number checked.
#include "io/weights/hdf5_file.h"

#include <algorithm>
#include <utility>

#include "core/base/error.h"
#include "core/base/format.h"
#include "io/weights/float32.h"

namespace trainctl {
namespace {

constexpr std::int64_t most_blocks = 500'000;  // a file that refers to itself never ends
constexpr int most_levels = 32;
constexpr std::uint64_t longest_name = 4096;
constexpr std::uint64_t longest_text = 64 << 20;
// Headers, names and texts may be read as often as this on the whole, and some more in small files: each is needed
// once.
constexpr std::uint64_t most_readings = 4, always_read = 32 << 20;
constexpr std::uint64_t nowhere = ~std::uint64_t{0};

enum MessageType {
  dataspace = 1,
  datatype = 3,
  external = 7,
  layout = 8,
  filters = 11,
  attribute = 12,
  more = 16,
  symbol_table = 17
};

}  // namespace

// Consecutive little-endian fields of a part of the file, or of bytes that were read.
class Hdf5File::Fields {
 public:
  Fields(const Hdf5File& file, std::uint64_t offset, std::uint64_t size) : file_(&file) {
    const auto end = static_cast<std::uint64_t>(file.file_.size());
    if (offset > end || size > end - offset) file.damaged(format("something lies at byte {}, behind its end", offset));
    file.spend(size);
    bytes_.resize(size);
    file.file_.read(static_cast<std::int64_t>(offset), bytes_.data(), static_cast<std::int64_t>(size));
  }
  Fields(const Hdf5File& file, std::string bytes) : file_(&file), bytes_(std::move(bytes)) {}

  std::size_t left() const { return bytes_.size() - at_; }
  std::uint64_t number(std::size_t bytes) {
    std::uint64_t value = 0;
    const std::string part = text(bytes);
    for (std::size_t i = bytes; i-- > 0;) value = value << 8 | static_cast<unsigned char>(part[i]);
    return value;
  }
  std::string text(std::size_t bytes) {
    if (bytes > left()) file_->damaged("a header is too short");
    at_ += bytes;
    return bytes_.substr(at_ - bytes, bytes);
  }
  Fields part(std::size_t bytes) { return {*file_, text(bytes)}; }
  void skip(std::size_t bytes) { text(std::min(bytes, left())); }
  void expect(const std::string& signature) {
    if (text(signature.size()) != signature) file_->damaged(format("no {} where one belongs", signature));
  }

 private:
  const Hdf5File* file_;
  std::string bytes_;
  std::size_t at_ = 0;
};

namespace {

// Sizes of a data space; nothing for one without any element.
template <class Fields>
std::optional<Shape> read_space(Fields fields) {
  const std::uint64_t version = fields.number(1), rank = fields.number(1);
  fields.skip(1);
  const std::uint64_t kind = fields.number(1);
  if (version == 1) fields.skip(4);
  if (version == 2 && kind == 2) return std::nullopt;
  std::vector<std::int64_t> sizes;
  for (std::uint64_t i = 0; i < rank; ++i) sizes.push_back(static_cast<std::int64_t>(fields.number(8)));
  return Shape(std::move(sizes));
}

struct NumberType {
  std::uint64_t kind = 0;  // 1: fractional, 3: text, 9: of variable length
  std::uint64_t flags = 0;
  std::uint64_t size = 0;  // bytes
  std::optional<DType> dtype;
};

template <class Fields>
NumberType read_type(Fields fields) {
  NumberType type;
  type.kind = fields.number(1) & 15;
  type.flags = fields.number(3);
  type.size = fields.number(4);
  if (type.kind != 1 || (type.flags & 1) != 0) return type;  // 1: big-endian
  fields.skip(2);
  const std::uint64_t bits = fields.number(2);
  fields.skip(1);
  const std::uint64_t exponent = fields.number(1);
  if (bits != 8 * type.size) return type;
  if (bits == 64 && exponent == 11) type.dtype = DType::float64;
  if (bits == 32 && exponent == 8) type.dtype = DType::float32;
  if (bits == 16 && exponent == 5) type.dtype = DType::float16;
  if (bits == 16 && exponent == 8) type.dtype = DType::bfloat16;
  return type;
}

}  // namespace

// What the messages of an object's header say.
struct Hdf5File::Object {
  bool is_group = false;
  std::uint64_t tree = 0, heap = 0;  // of a group: addresses of its members and of their names
  std::optional<NumberType> type;
  std::optional<Shape> space;
  std::uint64_t layout = nowhere;  // class: 0 compact, 1 contiguous, 2 chunked
  std::uint64_t address = nowhere, size = 0;
  bool filtered = false, elsewhere = false;
  std::vector<std::pair<std::string, std::string>> texts;  // attributes
};

Hdf5File::Hdf5File(Bytes file, std::string shown)
    : file_(std::move(file)),
      shown_(std::move(shown)),
      left_(most_readings * static_cast<std::uint64_t>(file_.size()) + always_read) {
  Fields head(*this, 0, 13);
  head.expect("\x89HDF\r\n\x1a\n");
  const std::uint64_t version = head.number(1);
  if (version > 1) unknown(format("superblock version {}", version));
  Fields rest(*this, 13, version == 1 ? 87 : 83);
  if (rest.number(1) != 8 || rest.number(1) != 8) unknown("addresses that have no 8 bytes");
  rest.skip(version == 1 ? 13 : 9);
  if (rest.number(8) != 0) unknown("a user block");
  rest.skip(8);
  const std::uint64_t end = rest.number(8);
  if (end > static_cast<std::uint64_t>(file_.size())) {
    damaged(format("it has {} bytes of {}", file_.size(), end));
  }
  rest.skip(16);
  const Object root = read_object(static_cast<std::int64_t>(rest.number(8)));
  if (!root.is_group) unknown("groups other than symbol tables");
  read_group("", root, 0);
  std::sort(data_sets_.begin(), data_sets_.end(), [](auto& a, auto& b) { return a.path < b.path; });
}

void Hdf5File::damaged(const std::string& what) const {
  throw Error(ErrorKind::data, Place{shown_}, "a damaged HDF5 file: " + what, "get the file again");
}

void Hdf5File::unknown(const std::string& what) const {
  throw Error(ErrorKind::data, Place{shown_}, "an HDF5 file with " + what + ", which is not read here",
              "save it anew from Keras, or by h5py without options");
}

void Hdf5File::count_block() {
  if (++blocks_ > most_blocks) damaged("it refers to itself, or has too many objects");
}

void Hdf5File::spend(std::uint64_t bytes) const {
  if (bytes > left_) damaged("its objects share so many headers and texts that it is many times as large as its bytes");
  left_ -= bytes;
}

Hdf5File::Object Hdf5File::read_object(std::int64_t address) {
  Object object;
  const auto start = static_cast<std::uint64_t>(address);
  Fields header(*this, start, 16);
  if (const std::uint64_t version = header.number(1); version != 1) {
    if (version == 'O') unknown("object headers of version 2");
    damaged("an object's header is none");
  }
  header.skip(1);
  std::uint64_t messages = header.number(2);
  header.skip(4);
  std::vector<std::pair<std::uint64_t, std::uint64_t>> blocks{{start + 16, header.number(4)}};
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    count_block();
    Fields block(*this, blocks[i].first, blocks[i].second);
    for (; messages > 0 && block.left() >= 8; --messages) {
      const std::uint64_t kind = block.number(2), size = block.number(2), flags = block.number(1);
      block.skip(3);
      Fields message = block.part(size);
      if ((flags & 2) != 0 && kind != attribute) {  // it lies elsewhere, for several objects
        if (kind == datatype || kind == dataspace) unknown("types that objects share");
        continue;
      }
      switch (kind) {
        case dataspace:
          object.space = read_space(message);
          break;
        case datatype:
          object.type = read_type(message);
          break;
        case external:
          object.elsewhere = true;
          break;
        case filters:
          object.filtered = true;
          break;
        case layout:
          if (const std::uint64_t version = message.number(1); version != 3) {
            unknown(format("data layout version {}", version));
          }
          object.layout = message.number(1);
          if (object.layout == 0) {
            object.size = message.number(2);
            object.address = blocks[i].first + blocks[i].second - block.left() - message.left();
          } else if (object.layout == 1) {
            object.address = message.number(8);
            object.size = message.number(8);
          }
          break;
        case attribute:
          read_attribute(message, object);
          break;
        case more:
          blocks.emplace_back(message.number(8), 0);
          blocks.back().second = message.number(8);
          if (blocks.size() > 1000) damaged("an object's header has too many parts");
          break;
        case symbol_table:
          object.is_group = true;
          object.tree = message.number(8);
          object.heap = message.number(8);
          break;
        default:
          break;
      }
    }
  }
  return object;
}

void Hdf5File::read_attribute(Fields message, Object& object) {
  const std::uint64_t version = message.number(1), flags = message.number(1);
  if (version < 1 || version > 3) damaged("an attribute is of no version");
  if (version > 1 && flags != 0) return;  // its type lies elsewhere: no text of Keras'
  const auto padded = [version](std::uint64_t size) { return version == 1 ? (size + 7) / 8 * 8 : size; };
  const std::uint64_t name_size = message.number(2), type_size = message.number(2), space_size = message.number(2);
  if (version == 3) message.skip(1);
  std::string name = message.text(padded(name_size));
  name.resize(std::min(name.find('\0'), name.size()));
  const NumberType type = read_type(message.part(padded(type_size)));
  const std::optional<Shape> space = read_space(message.part(padded(space_size)));
  if (!space || space->rank() != 0) return;
  if (type.kind == 3) {
    std::string text = message.text(type.size);
    text.resize(std::min(text.find('\0'), text.size()));
    object.texts.emplace_back(std::move(name), std::move(text));
  } else if (type.kind == 9 && (type.flags & 15) == 1) {
    const std::uint64_t length = message.number(4), address = message.number(8), index = message.number(4);
    object.texts.emplace_back(std::move(name), global_text(static_cast<std::int64_t>(address), index, length));
  }
}

std::string Hdf5File::global_text(std::int64_t address, std::uint64_t index, std::uint64_t length) {
  if (length == 0) return "";
  if (length > longest_text) damaged("an attribute is longer than any text");
  Fields head(*this, static_cast<std::uint64_t>(address), 16);
  head.expect("GCOL");
  head.skip(4);
  const std::uint64_t end = head.number(8);
  for (std::uint64_t at = 16; at + 16 <= end;) {
    count_block();
    Fields entry(*this, static_cast<std::uint64_t>(address) + at, 16);
    const std::uint64_t number = entry.number(2);
    entry.skip(6);
    const std::uint64_t size = entry.number(8);
    if (number == index) {
      if (length > size) break;
      return Fields(*this, static_cast<std::uint64_t>(address) + at + 16, length).text(length);
    }
    if (number == 0 || size > end) break;
    at += 16 + (size + 7) / 8 * 8;
  }
  damaged("the text of an attribute is missing");
}

void Hdf5File::read_group(const std::string& path, const Object& group, int depth) {
  if (depth > most_levels) damaged("its groups are nested too deep");
  for (const auto& [name, text] : group.texts) texts_[{path, name}] = text;
  Fields heap(*this, group.heap, 32);
  heap.expect("HEAP");
  heap.skip(20);
  read_node(static_cast<std::int64_t>(group.tree), static_cast<std::int64_t>(heap.number(8)), -1, path, depth);
}

// The name that begins at a place of a heap of names.
std::string Hdf5File::name_at(std::int64_t heap, std::uint64_t place) const {
  const auto end = static_cast<std::uint64_t>(file_.size());
  const std::uint64_t begin = static_cast<std::uint64_t>(heap) + place;
  const std::uint64_t most = std::min(longest_name, end - std::min(begin, end));
  std::string name = Fields(*this, begin, most).text(most);
  name.resize(std::min(name.find('\0'), name.size()));
  if (name.empty() || name.size() == longest_name) damaged("an object has no name");
  return name;
}

// The members below a node of a group's tree; `level` of the node, or -1 for the root. Names lie at `heap`.
void Hdf5File::read_node(std::int64_t address, std::int64_t heap, int level, const std::string& path, int depth) {
  count_block();
  if (level == 0) {
    Fields head(*this, static_cast<std::uint64_t>(address), 8);
    head.expect("SNOD");
    head.skip(2);
    const std::uint64_t members = head.number(2);
    Fields table(*this, static_cast<std::uint64_t>(address) + 8, members * 40);
    for (std::uint64_t i = 0; i < members; ++i) {
      count_block();
      std::string name = name_at(heap, table.number(8));
      const auto object_at = static_cast<std::int64_t>(table.number(8));
      const std::uint64_t kind = table.number(4);
      table.skip(20);
      if (kind == 2) continue;  // a symbolic link
      const std::string member = path.empty() ? name : path + "/" + name;
      spend(member.size());
      const Object object = read_object(object_at);
      object.is_group ? read_group(member, object, depth + 1) : add_data_set(member, object);
    }
    return;
  }
  Fields head(*this, static_cast<std::uint64_t>(address), 24);
  head.expect("TREE");
  if (head.number(1) != 0) damaged("a group's tree is none");
  const int own = static_cast<int>(head.number(1));
  if (level > 0 && own != level - 1) damaged("a group's tree has wrong levels");
  const std::uint64_t children = head.number(2);
  Fields entries(*this, static_cast<std::uint64_t>(address) + 24, children * 16);
  for (std::uint64_t i = 0; i < children; ++i) {
    entries.skip(8);
    const auto child = static_cast<std::int64_t>(entries.number(8));
    read_node(child, heap, own == 0 ? 0 : own, path, depth);
  }
}

void Hdf5File::add_data_set(const std::string& path, const Object& object) {
  if (!object.type || !object.space || object.type->kind != 1) return;
  if (!object.type->dtype) unknown(format("numbers of an unusual form in '{}'", path));
  if (object.elsewhere || object.layout > 1) unknown(format("'{}' in chunks or another file", path));
  if (object.filtered) unknown(format("'{}' compressed", path));
  DataSet data_set{path, *object.space, *object.type->dtype};
  std::int64_t bytes = size_of(data_set.dtype);
  for (const std::int64_t size : data_set.shape.sizes()) {
    if (size < 0) damaged(format("'{}' has a negative size", path));
    bytes = saturated_multiply(bytes, size);
  }
  if (object.address == nowhere) {
    data_set.offset = -1;
  } else {
    const auto end = static_cast<std::uint64_t>(file_.size()), size = static_cast<std::uint64_t>(bytes);
    if (object.size != size || object.address > end || size > end - object.address) {
      damaged(format("'{}' ({}) does not fit into its place", path, to_string(data_set.shape)));
    }
    data_set.offset = static_cast<std::int64_t>(object.address);
  }
  data_sets_.push_back(std::move(data_set));
}

std::optional<std::string> Hdf5File::text_attribute(const std::string& group, const std::string& name) const {
  const auto found = texts_.find({group, name});
  return found == texts_.end() ? std::nullopt : std::optional(found->second);
}

void Hdf5File::read(const DataSet& data_set, float* to) const {
  const std::int64_t count = data_set.shape.count();
  if (data_set.offset < 0) {
    std::fill_n(to, count, 0.0f);
    return;
  }
  const std::int64_t bytes = count * size_of(data_set.dtype);
  if (data_set.dtype == DType::float32) return file_.read(data_set.offset, to, bytes);
  std::vector<char> stored(static_cast<std::size_t>(bytes));
  file_.read(data_set.offset, stored.data(), bytes);
  to_float32(data_set.dtype, stored.data(), count, to);
}

}  // namespace trainctl
