// Writes the superblock, then the values of all data sets, then the headers of groups and data sets, so that every
// address is known when it is written.
#include "io/weights/hdf5_writer.h"

#include <algorithm>
#include <string_view>

#include "io/weights/hdf5_source.h"

namespace trainctl {
namespace {

constexpr std::uint64_t superblock_bytes = 96;
constexpr std::size_t node_entries = 8;  // entries in one symbol table node of a group

// Little-endian numbers and text, one after the other.
class Block {
 public:
  Block& number(std::uint64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) bytes_ += static_cast<char>(value >> 8 * i);
    return *this;
  }
  Block& text(std::string_view value) {
    bytes_ += value;
    return *this;
  }
  // fill() appends zeros up to a size in bytes, align() up to a multiple of eight bytes.
  Block& fill(std::size_t size) {
    bytes_.resize(size);
    return *this;
  }
  Block& align() { return fill((bytes_.size() + 7) / 8 * 8); }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

struct Hdf5Message {
  int type = 0;
  std::string body;
};

std::string object_header(const std::vector<Hdf5Message>& messages) {
  Block body;
  for (const auto& [type, message] : messages) {
    const std::size_t padded = (message.size() + 7) / 8 * 8;
    body.number(static_cast<std::uint64_t>(type), 2).number(padded, 2).number(0, 4).text(message).align();
  }
  Block header;  // version, number of messages, references, size
  header.number(1, 2).number(messages.size(), 2).number(1, 4).number(body.bytes().size(), 4).align();
  return header.text(body.bytes()).bytes();
}

std::string dataspace_of(const std::vector<std::int64_t>& sizes) {
  Block block;
  block.number(1, 1).number(sizes.size(), 1).number(0, 6);
  for (const std::int64_t size : sizes) block.number(static_cast<std::uint64_t>(size), 8);
  return block.bytes();
}

// Describes IEEE 754 float32: the positions of sign, exponent and mantissa among the 32 bits.
std::string float32_type() {
  Block block;
  block.number(0x11, 1).number(0x1F20, 3).number(4, 4).number(0, 2).number(32, 2);
  return block.number(23, 1).number(8, 1).number(0, 1).number(23, 1).number(127, 4).bytes();
}

// An attribute with a list of names, as texts of equal length that are padded with zeros.
Hdf5Message names_message(const std::string& name, const std::vector<std::string>& values) {
  std::size_t length = 1;
  for (const std::string& value : values) length = std::max(length, value.size());
  const std::string type = Block().number(0x13, 1).number(1, 3).number(length, 4).bytes();
  const std::string space = dataspace_of({std::ssize(values)});
  Block block;
  block.number(1, 2).number(name.size() + 1, 2).number(type.size(), 2).number(space.size(), 2);
  block.text(name).number(0, 1).align().text(type).align().text(space).align();
  for (const std::string& value : values) block.text(value).fill(block.bytes().size() + length - value.size());
  return {0x0C, block.bytes()};
}

// Builds the headers of groups and data sets, which are written after the values.
class Hdf5Index {
 public:
  explicit Hdf5Index(std::uint64_t values_end) : begin_(values_end) {}

  // Adds a group and returns the address of its object header. The order of calls determines the addresses of the
  // values.
  std::uint64_t add(const Hdf5Group& group) {
    std::map<std::string, std::uint64_t> members;  // the addresses of object headers
    for (const auto& [name, inner] : group.groups) members[name] = add(inner);
    for (const auto& [name, data_set] : group.data_sets) members[name] = add(data_set);
    std::vector<Hdf5Message> messages{{0x11, symbol_table(members)}};
    for (const auto& [name, values] : group.names) messages.push_back(names_message(name, values));
    return append(object_header(messages));
  }
  const std::string& bytes() const { return bytes_; }
  // Half of the maximal number of nodes of a group, which the superblock contains.
  std::size_t half_nodes() const { return half_nodes_; }
  void set_half_nodes(std::size_t half) { half_nodes_ = half; }

 private:
  std::uint64_t append(const std::string& block) {
    const std::uint64_t address = begin_ + bytes_.size();
    bytes_ += block;
    bytes_.resize((bytes_.size() + 7) / 8 * 8);
    return address;
  }

  std::uint64_t add(const Hdf5DataSet& data_set) {
    const auto bytes = static_cast<std::uint64_t>(data_set.shape.count()) * sizeof(float);
    const std::string layout = Block().number(3, 1).number(1, 1).number(next_values_, 8).number(bytes, 8).bytes();
    next_values_ += bytes;
    return append(
        object_header({{0x01, dataspace_of(data_set.shape.sizes())}, {0x03, float32_type()}, {0x08, layout}}));
  }

  // Adds the members of a group: names in a heap, members in nodes of node_entries each, and a tree of one level over
  // the nodes. Returns the body of the symbol table message.
  std::string symbol_table(const std::map<std::string, std::uint64_t>& members) {
    Block names, tree;
    names.number(0, 8);
    std::vector<std::pair<std::uint64_t, std::uint64_t>> nodes;  // address of a node, and offset of its last name
    auto member = members.begin();
    for (std::size_t first = 0; first < members.size(); first += node_entries) {
      const std::size_t count = std::min(node_entries, members.size() - first);
      Block node;
      node.text("SNOD").number(1, 2).number(count, 2);
      for (std::size_t i = 0; i < count; ++i, ++member) {
        const std::uint64_t name_offset = names.bytes().size();
        names.text(member->first).number(0, 1).align();
        node.number(name_offset, 8).number(member->second, 8).number(0, 8).number(0, 8).number(0, 8);
        if (i + 1 == count) nodes.emplace_back(0, name_offset);
      }
      nodes.back().first = append(node.fill(8 + node_entries * 40).bytes());
    }
    tree.text("TREE").number(0, 2).number(nodes.size(), 2);
    tree.number(undefined_address, 8).number(undefined_address, 8).number(0, 8);
    for (const auto& [address, last] : nodes) tree.number(address, 8).number(last, 8);
    const std::uint64_t tree_address = append(tree.fill(24 + (4 * half_nodes_ + 1) * 8).bytes());
    const std::uint64_t text_address = append(names.bytes());
    Block heap;
    heap.text("HEAP").number(0, 4).number(names.bytes().size(), 8).number(1, 8).number(text_address, 8);
    return Block().number(tree_address, 8).number(append(heap.bytes()), 8).bytes();
  }

  std::uint64_t begin_, next_values_ = superblock_bytes;
  std::size_t half_nodes_ = 16;
  std::string bytes_;
};

// Returns the largest number of members of a group.
std::size_t largest_group(const Hdf5Group& group) {
  std::size_t largest = group.groups.size() + group.data_sets.size();
  for (const auto& [name, inner] : group.groups) largest = std::max(largest, largest_group(inner));
  return largest;
}

// Returns the data sets in the order in which Hdf5Index assigns their addresses.
std::vector<Hdf5DataSet> values_of(const Hdf5Group& group) {
  std::vector<Hdf5DataSet> all;
  for (const auto& [name, inner] : group.groups) {
    const std::vector<Hdf5DataSet> own = values_of(inner);
    all.insert(all.end(), own.begin(), own.end());
  }
  for (const auto& [name, data_set] : group.data_sets) all.push_back(data_set);
  return all;
}

}  // namespace

void write_hdf5(OutputFile& file, const Hdf5Group& root) {
  const std::vector<Hdf5DataSet> values = values_of(root);
  std::uint64_t end = superblock_bytes;
  for (const Hdf5DataSet& data_set : values) end += static_cast<std::uint64_t>(data_set.shape.count()) * sizeof(float);
  end = (end + 7) / 8 * 8;
  Hdf5Index index(end);
  index.set_half_nodes(std::max<std::size_t>(16, (largest_group(root) / node_entries + 2) / 2));
  const std::uint64_t root_address = index.add(root);

  Block superblock;  // signature; versions; sizes of addresses and lengths; half the sizes of nodes
  superblock.text("\x89HDF\r\n\x1a\n").number(0, 5).number(8, 1).number(8, 1).number(0, 1);
  superblock.number(node_entries / 2, 2).number(index.half_nodes(), 2).number(0, 4).number(0, 8);
  superblock.number(undefined_address, 8).number(end + index.bytes().size(), 8).number(undefined_address, 8);
  superblock.number(0, 8).number(root_address, 8).fill(superblock_bytes);
  file.write(superblock.bytes().data(), std::ssize(superblock.bytes()));
  std::uint64_t written = superblock_bytes;
  for (const Hdf5DataSet& data_set : values) {
    const std::int64_t bytes = data_set.shape.count() * static_cast<std::int64_t>(sizeof(float));
    file.write(data_set.values, bytes);
    written += static_cast<std::uint64_t>(bytes);
  }
  const std::string gap(end - written, '\0');
  file.write(gap.data(), std::ssize(gap));
  file.write(index.bytes().data(), std::ssize(index.bytes()));
}

}  // namespace trainctl
