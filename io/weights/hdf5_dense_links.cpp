// Reads the links of an HDF5 group that are stored densely.
#include "io/weights/hdf5_dense_links.h"

#include <algorithm>
#include <bit>

#include "core/base/format.h"

namespace trainctl {
namespace {

constexpr std::uint64_t nothing = ~std::uint64_t{0};
constexpr std::uint64_t deepest_tree = 32;
constexpr std::uint64_t largest_record = 64;  // those of names have 11 bytes

std::uint64_t bytes_for(std::uint64_t value) { return (static_cast<std::uint64_t>(std::bit_width(value)) + 7) / 8; }

// A heap of objects that are found by their offsets in a space of addresses of its own, which blocks cover row by row:
// all blocks of a row are equally long, from the second row on twice as long as those of the row before.
class FractalHeap {
 public:
  FractalHeap(Hdf5Source& source, std::uint64_t address) : source_(source) {
    Hdf5Fields head(source, address, 142);
    head.expect("FRHP");
    if (head.number(1) != 0) source.unknown("a fractal heap of another version");
    head.skip(2);
    if (head.number(2) != 0) source.unknown("a filtered fractal heap");
    head.skip(1);
    const std::uint64_t largest_object = head.number(4);
    head.skip(12 * 8);
    width_ = head.number(2);
    first_block_ = head.number(8);
    largest_block_ = head.number(8);
    offset_bytes_ = (head.number(2) + 7) / 8;
    head.skip(2);
    root_ = head.number(8);
    root_rows_ = head.number(2);
    length_bytes_ = bytes_for(std::min(largest_object, largest_block_));
    if (width_ == 0 || !std::has_single_bit(first_block_) || !std::has_single_bit(largest_block_) ||
        first_block_ > largest_block_ || largest_block_ > std::uint64_t{1} << 31 || offset_bytes_ > 8 ||
        root_rows_ > 64) {
      source.damaged("a fractal heap has impossible sizes");
    }
  }

  // The object of an identifier as the tree holds it.
  std::string object(std::string identifier) {
    Hdf5Fields id(source_, std::move(identifier));
    if ((id.number(1) & 0x30) != 0) source_.unknown("links that lie outside of their heap's blocks");
    const std::uint64_t offset = id.number(offset_bytes_), length = id.number(length_bytes_);
    source_.spend(length);
    return Hdf5Fields(source_, place(offset), length).text(length);
  }

 private:
  std::uint64_t block_size(std::uint64_t row) const { return row == 0 ? first_block_ : first_block_ << (row - 1); }

  // Where in the file the byte lies that has this offset in the heap.
  std::uint64_t place(std::uint64_t offset) {
    std::uint64_t block = root_, rows = root_rows_, begin = 0;
    for (std::uint64_t level = 0; rows > 0; ++level) {
      source_.count_block();
      if (level > deepest_tree) source_.damaged("a fractal heap is nested too deep");
      std::uint64_t row = 0, row_begin = begin;
      while (row < rows && offset - row_begin >= width_ * block_size(row)) row_begin += width_ * block_size(row++);
      if (row == rows || block_size(row) == 0) source_.damaged("an object lies behind the end of its heap");
      const std::uint64_t column = (offset - row_begin) / block_size(row);
      Hdf5Fields(source_, block, 4).expect("FHIB");
      block = Hdf5Fields(source_, block + 13 + offset_bytes_ + 8 * (row * width_ + column), 8).number(8);
      begin = row_begin + column * block_size(row);
      const bool is_direct = block_size(row) <= largest_block_;
      rows = is_direct ? 0 : static_cast<std::uint64_t>(std::bit_width(block_size(row) / (first_block_ * width_)));
    }
    if (block == nothing || offset < begin) source_.damaged("an object lies in no block of its heap");
    return block + (offset - begin);
  }

  Hdf5Source& source_;
  std::uint64_t width_ = 0, first_block_ = 0, largest_block_ = 0;
  std::uint64_t offset_bytes_ = 0, length_bytes_ = 0;
  std::uint64_t root_ = 0, root_rows_ = 0;  // no rows: the root is the only block
};

// A tree of records of one size; nodes below the root say how many records they have where they are referred to.
class Records {
 public:
  Records(Hdf5Source& source, std::uint64_t address) : source_(source) {
    Hdf5Fields head(source, address, 34);
    head.expect("BTHD");
    head.skip(2);
    const std::uint64_t node = head.number(4);
    size_ = head.number(2);
    const std::uint64_t depth = head.number(2);
    head.skip(2);
    const std::uint64_t root = head.number(8), count = head.number(2);
    if (size_ == 0 || size_ > largest_record || node < 10 + size_ || depth > deepest_tree)
      source.damaged("a tree has impossible sizes");
    most_ = {(node - 10) / size_};
    total_ = {most_[0]};
    for (std::uint64_t level = 1; level <= depth; ++level) {
      const std::uint64_t pointer = pointer_size(level);
      most_.push_back((node - 10 - std::min(node - 10, pointer)) / (size_ + pointer));
      total_.push_back((most_[level] + 1) * total_[level - 1] + most_[level]);
    }
    if (root != nothing) read_node(root, count, depth);
  }

  std::vector<std::string> records;

 private:
  // A pointer to a node below one of this level: its address, and how many records it has, itself and all below it.
  std::uint64_t pointer_size(std::uint64_t level) const {
    return 8 + bytes_for(most_[0]) + (level > 1 ? bytes_for(total_[level - 1]) : 0);
  }

  void read_node(std::uint64_t address, std::uint64_t count, std::uint64_t level) {
    source_.count_block();
    if (count > most_[level]) source_.damaged("a node of a tree has too many records");
    const std::uint64_t pointers = level > 0 ? (count + 1) * pointer_size(level) : 0;
    Hdf5Fields node(source_, address, 6 + count * size_ + pointers);
    node.expect(level > 0 ? "BTIN" : "BTLF");
    node.skip(2);
    for (std::uint64_t i = 0; i < count; ++i) {
      source_.count_block();
      records.push_back(node.text(size_));
    }
    for (std::uint64_t i = 0; level > 0 && i <= count; ++i) {
      const std::uint64_t child = node.number(8), child_count = node.number(bytes_for(most_[0]));
      node.skip(pointer_size(level) - 8 - bytes_for(most_[0]));
      read_node(child, child_count, level - 1);
    }
  }

  Hdf5Source& source_;
  std::uint64_t size_ = 0;
  std::vector<std::uint64_t> most_, total_;  // records of a node, by its level, and of all below it
};

}  // namespace

std::vector<std::string> dense_links(Hdf5Source& source, std::uint64_t heap, std::uint64_t tree) {
  FractalHeap objects(source, heap);
  std::vector<std::string> links;
  constexpr std::size_t hash = 4;  // of the name, in front of the identifier
  for (const std::string& record : Records(source, tree).records) {
    if (record.size() <= hash) source.damaged("a tree of names has no names");
    links.push_back(objects.object(record.substr(hash)));
  }
  return links;
}

}  // namespace trainctl
