// Reads HDF5 files, and checks every number.
#include "io/weights/hdf5_file.h"

#include <algorithm>
#include <utility>

#include "core/base/format.h"
#include "io/datasets/arrays/float32.h"
#include "io/weights/hdf5_dense_links.h"

namespace trainctl {
namespace {

constexpr int max_group_levels = 32;
constexpr std::uint64_t max_name_bytes = 4096;
constexpr std::uint64_t max_text_bytes = 64 << 20;

enum MessageType {
  dataspace = 1,
  link_info = 2,
  datatype = 3,
  link = 6,
  external = 7,
  layout = 8,
  filters = 11,
  attribute = 12,
  more = 16,
  symbol_table = 17
};

}  // namespace

namespace {

// Returns the sizes of a data space; no value for a data space without elements.
std::optional<Shape> read_space(Hdf5Fields fields) {
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
  std::uint64_t kind = 0;  // 1: floating-point, 3: text, 9: of variable length
  std::uint64_t flags = 0;
  std::uint64_t size = 0;  // bytes
  std::optional<DType> dtype;
};

NumberType read_type(Hdf5Fields fields) {
  NumberType type;
  type.kind = fields.number(1) & 15;
  type.flags = fields.number(3);
  type.size = fields.number(4);
  if (type.kind != 1 || (type.flags & 1) != 0) return type;  // flag 1: big-endian
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

// The contents of the messages in an object's header.
struct Hdf5File::Object {
  bool is_group = false;
  // For a group: addresses of the tree of its members and of the heap with their names.
  std::uint64_t tree = undefined_address, heap = undefined_address;
  // For a group of the newer kind, which HDF5 uses if a member's name is not ASCII: names and addresses of its members.
  // For a large group of this kind: the addresses of the heap and the tree that list the members.
  std::vector<std::pair<std::string, std::uint64_t>> links;
  std::uint64_t link_heap = undefined_address, link_tree = undefined_address;
  std::optional<NumberType> type;
  std::optional<Shape> space;
  std::uint64_t layout = undefined_address;  // class: 0 compact, 1 contiguous, 2 chunked
  std::uint64_t address = undefined_address, size = 0;
  bool filtered = false, is_external = false;
  std::vector<std::pair<std::string, std::vector<std::string>>> texts;  // attributes, each with its name and texts
};

Hdf5File::Hdf5File(Bytes file, std::string shown) : source_(std::move(file), std::move(shown)) {
  Hdf5Fields head(source_, 0, 13);
  head.expect("\x89HDF\r\n\x1a\n");
  const std::uint64_t version = head.number(1);
  if (version > 1) source_.unknown(format("superblock version {}", version));
  Hdf5Fields rest(source_, 13, version == 1 ? 87 : 83);
  if (rest.number(1) != 8 || rest.number(1) != 8) source_.unknown("addresses of other sizes than 8 bytes");
  rest.skip(version == 1 ? 13 : 9);
  if (rest.number(8) != 0) source_.unknown("a user block");
  rest.skip(8);
  const std::uint64_t end = rest.number(8);
  if (end > source_.size()) {
    source_.damaged(format("it has {} bytes instead of {}", source_.size(), end));
  }
  rest.skip(16);
  const Object root = read_object(static_cast<std::int64_t>(rest.number(8)));
  if (!root.is_group) source_.unknown("groups other than symbol tables");
  read_group("", root, 0);
  std::sort(data_sets_.begin(), data_sets_.end(), [](auto& a, auto& b) { return a.path < b.path; });
}

Hdf5File::Object Hdf5File::read_object(std::int64_t address) {
  Object object;
  const auto start = static_cast<std::uint64_t>(address);
  Hdf5Fields header(source_, start, 16);
  if (const std::uint64_t version = header.number(1); version != 1) {
    if (version == 'O') source_.unknown("object headers of version 2");
    source_.damaged("an object has no valid header");
  }
  header.skip(1);
  std::uint64_t messages = header.number(2);
  header.skip(4);
  std::vector<std::pair<std::uint64_t, std::uint64_t>> blocks{{start + 16, header.number(4)}};
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    source_.count_block();
    Hdf5Fields block(source_, blocks[i].first, blocks[i].second);
    for (; messages > 0 && block.left() >= 8; --messages) {
      const std::uint64_t kind = block.number(2), size = block.number(2), flags = block.number(1);
      block.skip(3);
      Hdf5Fields message = block.subrange(size);
      if ((flags & 2) != 0 && kind != attribute) {  // stored elsewhere and shared by objects
        if (kind == datatype || kind == dataspace) source_.unknown("types that objects share");
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
          object.is_external = true;
          break;
        case filters:
          object.filtered = true;
          break;
        case layout:
          if (const std::uint64_t version = message.number(1); version != 3) {
            source_.unknown(format("data layout version {}", version));
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
          if (blocks.size() > 1000) source_.damaged("an object's header has too many blocks");
          break;
        case symbol_table:
          object.is_group = true;
          object.tree = message.number(8);
          object.heap = message.number(8);
          break;
        case link_info:
          object.is_group = true;
          message.skip(1);
          message.skip((message.number(1) & 1) != 0 ? 8 : 0);  // flag 1: the order of creation is tracked
          object.link_heap = message.number(8);
          object.link_tree = message.number(8);
          break;
        case link:
          add_link(message, object);
          break;
        default:
          break;
      }
    }
  }
  return object;
}

void Hdf5File::read_attribute(Hdf5Fields message, Object& object) {
  const std::uint64_t version = message.number(1), flags = message.number(1);
  if (version < 1 || version > 3) source_.damaged("an attribute has an unknown version");
  if (version > 1 && flags != 0) return;  // the type is stored elsewhere: not a text that Keras wrote
  const auto padded = [version](std::uint64_t size) { return version == 1 ? (size + 7) / 8 * 8 : size; };
  const std::uint64_t name_size = message.number(2), type_size = message.number(2), space_size = message.number(2);
  if (version == 3) message.skip(1);
  std::string name = message.text(padded(name_size));
  name.resize(std::min(name.find('\0'), name.size()));
  const NumberType type = read_type(message.subrange(padded(type_size)));
  const std::optional<Shape> space = read_space(message.subrange(padded(space_size)));
  const bool is_variable = type.kind == 9 && (type.flags & 15) == 1;
  if (!space || space->rank() > 1 || (type.kind != 3 && !is_variable)) return;
  const std::uint64_t bytes = is_variable ? 16 : std::max<std::uint64_t>(1, type.size);
  const auto count = static_cast<std::uint64_t>(space->count());
  if (count > message.left() / bytes) source_.damaged("an attribute is shorter than its list");
  std::vector<std::string>& texts = object.texts.emplace_back(std::move(name), std::vector<std::string>()).second;
  for (std::uint64_t i = 0; i < count; ++i) {
    if (is_variable) {
      const std::uint64_t length = message.number(4), address = message.number(8), index = message.number(4);
      source_.spend(length);
      texts.push_back(global_text(static_cast<std::int64_t>(address), index, length));
    } else {
      std::string& text = texts.emplace_back(message.text(type.size));
      text.resize(std::min(text.find('\0'), text.size()));
    }
  }
}

// Adds the member of a group that a message names; a link to a path is skipped.
void Hdf5File::add_link(Hdf5Fields message, Object& object) {
  if (message.number(1) != 1) source_.unknown("links of another version");
  const std::uint64_t flags = message.number(1);
  const std::uint64_t kind = (flags & 8) != 0 ? message.number(1) : 0;
  message.skip((flags & 4) != 0 ? 8 : 0);   // the order of creation
  message.skip((flags & 16) != 0 ? 1 : 0);  // the character set
  std::string name = message.text(message.number(std::size_t{1} << (flags & 3)));
  if (name.empty() || name.size() >= max_name_bytes) source_.damaged("an object has no name");
  if (kind == 0) object.links.emplace_back(std::move(name), message.number(8));
}

std::string Hdf5File::global_text(std::int64_t address, std::uint64_t index, std::uint64_t length) {
  if (length == 0) return "";
  if (length > max_text_bytes) source_.damaged("an attribute is longer than any text");
  Hdf5Fields head(source_, static_cast<std::uint64_t>(address), 16);
  head.expect("GCOL");
  head.skip(4);
  const std::uint64_t end = head.number(8);
  for (std::uint64_t at = 16; at + 16 <= end;) {
    source_.count_block();
    Hdf5Fields entry(source_, static_cast<std::uint64_t>(address) + at, 16);
    const std::uint64_t number = entry.number(2);
    entry.skip(6);
    const std::uint64_t size = entry.number(8);
    if (number == index) {
      if (length > size) break;
      return Hdf5Fields(source_, static_cast<std::uint64_t>(address) + at + 16, length).text(length);
    }
    if (number == 0 || size > end) break;
    at += 16 + (size + 7) / 8 * 8;
  }
  source_.damaged("the text of an attribute is missing");
}

void Hdf5File::read_group(const std::string& path, const Object& group, int depth) {
  if (depth > max_group_levels) source_.damaged("its groups are nested too deep");
  for (const auto& [name, texts] : group.texts) texts_[{path, name}] = texts;
  if (group.tree != undefined_address) {
    Hdf5Fields heap(source_, group.heap, 32);
    heap.expect("HEAP");
    heap.skip(20);
    read_node(static_cast<std::int64_t>(group.tree), static_cast<std::int64_t>(heap.number(8)), -1, path, depth);
  }
  Object dense;  // holds the links that are stored outside the header
  if (group.link_heap != undefined_address) {
    for (std::string& message : dense_links(source_, group.link_heap, group.link_tree)) {
      add_link({source_, std::move(message)}, dense);
    }
  }
  for (const Object* members : {&group, &std::as_const(dense)}) {
    for (const auto& [name, address] : members->links) {
      read_member(path, name, static_cast<std::int64_t>(address), depth);
    }
  }
}

void Hdf5File::read_member(const std::string& path, const std::string& name, std::int64_t address, int depth) {
  source_.count_block();
  const std::string member = path.empty() ? name : path + "/" + name;
  source_.spend(member.size());
  const Object object = read_object(address);
  object.is_group ? read_group(member, object, depth + 1) : add_data_set(member, object);
}

// Returns the name at an offset of a heap of names.
std::string Hdf5File::name_at(std::int64_t heap, std::uint64_t offset) const {
  const auto end = source_.size();
  const std::uint64_t begin = static_cast<std::uint64_t>(heap) + offset;
  const std::uint64_t available = std::min(max_name_bytes, end - std::min(begin, end));
  std::string name = Hdf5Fields(source_, begin, available).text(available);
  name.resize(std::min(name.find('\0'), name.size()));
  if (name.empty() || name.size() == max_name_bytes) source_.damaged("an object has no name");
  return name;
}

// Reads the members below a node of a group's tree. `level` is the node's level, or -1 for the root; `heap` is the
// address of the names.
void Hdf5File::read_node(std::int64_t address, std::int64_t heap, int level, const std::string& path, int depth) {
  source_.count_block();
  if (level == 0) {
    Hdf5Fields head(source_, static_cast<std::uint64_t>(address), 8);
    head.expect("SNOD");
    head.skip(2);
    const std::uint64_t members = head.number(2);
    Hdf5Fields table(source_, static_cast<std::uint64_t>(address) + 8, members * 40);
    for (std::uint64_t i = 0; i < members; ++i) {
      const std::string name = name_at(heap, table.number(8));
      const auto object_at = static_cast<std::int64_t>(table.number(8));
      const std::uint64_t kind = table.number(4);
      table.skip(20);
      if (kind == 2) continue;  // a symbolic link
      read_member(path, name, object_at, depth);
    }
    return;
  }
  Hdf5Fields head(source_, static_cast<std::uint64_t>(address), 24);
  head.expect("TREE");
  if (head.number(1) != 0) source_.damaged("a group has no valid tree");
  const int own = static_cast<int>(head.number(1));
  if (level > 0 && own != level - 1) source_.damaged("a group's tree has wrong levels");
  const std::uint64_t children = head.number(2);
  Hdf5Fields entries(source_, static_cast<std::uint64_t>(address) + 24, children * 16);
  for (std::uint64_t i = 0; i < children; ++i) {
    entries.skip(8);
    const auto child = static_cast<std::int64_t>(entries.number(8));
    read_node(child, heap, own == 0 ? 0 : own, path, depth);
  }
}

void Hdf5File::add_data_set(const std::string& path, const Object& object) {
  if (!object.type || !object.space || object.type->kind != 1) return;
  if (!object.type->dtype) source_.unknown(format("numbers of an unusual type in '{}'", path));
  if (object.is_external || object.layout > 1) source_.unknown(format("'{}' in chunks or another file", path));
  if (object.filtered) source_.unknown(format("compressed data in '{}'", path));
  DataSet data_set{path, *object.space, *object.type->dtype};
  std::int64_t bytes = size_of(data_set.dtype);
  for (const std::int64_t size : data_set.shape.sizes()) {
    if (size < 0) source_.damaged(format("'{}' has a negative size", path));
    bytes = saturated_multiply(bytes, size);
  }
  if (object.address == undefined_address) {
    data_set.offset = -1;
  } else {
    const auto end = source_.size(), size = static_cast<std::uint64_t>(bytes);
    if (object.size != size || object.address > end || size > end - object.address) {
      source_.damaged(format("'{}' ({}) does not have the size of its stored data", path, to_string(data_set.shape)));
    }
    data_set.offset = static_cast<std::int64_t>(object.address);
  }
  data_sets_.push_back(std::move(data_set));
}

std::optional<std::string> Hdf5File::text_attribute(const std::string& group, const std::string& name) const {
  const auto found = texts_.find({group, name});
  return found == texts_.end() || found->second.size() != 1 ? std::nullopt : std::optional(found->second[0]);
}

std::vector<std::string> Hdf5File::text_list(const std::string& group, const std::string& name) const {
  const auto append = [&](const std::string& attribute_name, std::vector<std::string>& list) {
    const auto found = texts_.find({group, attribute_name});
    if (found == texts_.end()) return false;
    list.insert(list.end(), found->second.begin(), found->second.end());
    return true;
  };
  std::vector<std::string> list;
  if (append(name, list)) return list;
  for (int number = 0; append(name + std::to_string(number), list);) ++number;
  return list;
}

void Hdf5File::read(const DataSet& data_set, float* to) const {
  const std::int64_t count = data_set.shape.count();
  if (data_set.offset < 0) {
    std::fill_n(to, count, 0.0f);
    return;
  }
  const std::int64_t bytes = count * size_of(data_set.dtype);
  if (data_set.dtype == DType::float32) return source_.bytes().read(data_set.offset, to, bytes);
  std::vector<char> stored(static_cast<std::size_t>(bytes));
  source_.bytes().read(data_set.offset, stored.data(), bytes);
  to_float32(data_set.dtype, stored.data(), count, to);
}

}  // namespace trainctl
