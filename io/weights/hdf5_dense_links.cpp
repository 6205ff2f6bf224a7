// Reads the links of an HDF5 group that are stored densely.
#include "io/weights/hdf5_dense_links.h"

#include <algorithm>
#include <bit>

#include "core/base/format.h"

namespace trainctl {
namespace {

constexpr std::uint64_t max_heap_levels = 32;
constexpr std::uint64_t max_record_bytes = 64;  // records of names have 11 bytes

std::uint64_t bytes_for(std::uint64_t value) { return (static_cast<std::uint64_t>(std::bit_width(value)) + 7) / 8; }

// A heap of objects, which are found by their offsets in the heap's address space. Blocks cover this space row by row.
// All blocks of a row have the same size; rows 0 and 1 have the size of the first block, and each later row twice the
// size of the row before.
class FractalHeap {
 public:
  FractalHeap(Hdf5Source& source, std::uint64_t address) : source_(source) {
    Hdf5Fields head(source, address, 142);
    head.expect("FRHP");
    if (head.number(1) != 0) source.unknown("an unknown version of a fractal heap");
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

  // Returns the object to which an identifier from the tree refers.
  std::string object(std::string identifier) {
    Hdf5Fields id(source_, std::move(identifier));
    if ((id.number(1) & 0x30) != 0) source_.unknown("links outside the blocks of their heap");
    const std::uint64_t offset = id.number(offset_bytes_), length = id.number(length_bytes_);
    source_.spend(length);
    return Hdf5Fields(source_, file_offset(offset), length).text(length);
  }

 private:
  std::uint64_t block_size(std::uint64_t row) const { return row == 0 ? first_block_ : first_block_ << (row - 1); }

  // Returns the offset in the file of the byte with this offset in the heap.
  std::uint64_t file_offset(std::uint64_t offset) {
    std::uint64_t block = root_, rows = root_rows_, begin = 0;
    for (std::uint64_t level = 0; rows > 0; ++level) {
      source_.count_block();
      if (level > max_heap_levels) source_.damaged("a fractal heap is nested too deep");
      std::uint64_t row = 0, row_begin = begin;
      while (row < rows && offset - row_begin >= width_ * block_size(row)) row_begin += width_ * block_size(row++);
      if (row == rows || block_size(row) == 0) source_.damaged("an object is stored after the end of its heap");
      const std::uint64_t column = (offset - row_begin) / block_size(row);
      Hdf5Fields(source_, block, 4).expect("FHIB");
      block = Hdf5Fields(source_, block + 13 + offset_bytes_ + 8 * (row * width_ + column), 8).number(8);
      begin = row_begin + column * block_size(row);
      const bool is_direct = block_size(row) <= largest_block_;
      rows = is_direct ? 0 : static_cast<std::uint64_t>(std::bit_width(block_size(row) / (first_block_ * width_)));
    }
    if (block == undefined_address || offset < begin) source_.damaged("an object is in no block of its heap");
    return block + (offset - begin);
  }

  Hdf5Source& source_;
  std::uint64_t width_ = 0, first_block_ = 0, largest_block_ = 0;
  std::uint64_t offset_bytes_ = 0, length_bytes_ = 0;
  std::uint64_t root_ = 0, root_rows_ = 0;  // no rows: the root is the only block
};

// A tree of records of equal size. The number of records in a node is stored in its parent; the number of records in
// the root is stored in the header.
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
    if (size_ == 0 || size_ > max_record_bytes || node < 10 + size_ || depth > max_heap_levels)
      source.damaged("a tree has impossible sizes");
    max_records_ = {(node - 10) / size_};
    max_total_ = {max_records_[0]};
    for (std::uint64_t level = 1; level <= depth; ++level) {
      const std::uint64_t pointer = pointer_size(level);
      max_records_.push_back((node - 10 - std::min(node - 10, pointer)) / (size_ + pointer));
      max_total_.push_back((max_records_[level] + 1) * max_total_[level - 1] + max_records_[level]);
    }
    if (root != undefined_address) read_node(root, count, depth);
  }

  std::vector<std::string> records;

 private:
  // Returns the bytes of a pointer from a node of this level to a node below: its address, its number of records, and
  // the number of records in it and below it.
  std::uint64_t pointer_size(std::uint64_t level) const {
    return 8 + bytes_for(max_records_[0]) + (level > 1 ? bytes_for(max_total_[level - 1]) : 0);
  }

  void read_node(std::uint64_t address, std::uint64_t count, std::uint64_t level) {
    source_.count_block();
    if (count > max_records_[level]) source_.damaged("a node of a tree has too many records");
    const std::uint64_t pointers = level > 0 ? (count + 1) * pointer_size(level) : 0;
    Hdf5Fields node(source_, address, 6 + count * size_ + pointers);
    node.expect(level > 0 ? "BTIN" : "BTLF");
    node.skip(2);
    for (std::uint64_t i = 0; i < count; ++i) {
      source_.count_block();
      records.push_back(node.text(size_));
    }
    for (std::uint64_t i = 0; level > 0 && i <= count; ++i) {
      const std::uint64_t child = node.number(8), child_count = node.number(bytes_for(max_records_[0]));
      node.skip(pointer_size(level) - 8 - bytes_for(max_records_[0]));
      read_node(child, child_count, level - 1);
    }
  }

  Hdf5Source& source_;
  std::uint64_t size_ = 0;
  // The maximal number of records of a node at each level, and of a node together with all nodes below it.
  std::vector<std::uint64_t> max_records_, max_total_;
};

}  // namespace

std::vector<std::string> dense_links(Hdf5Source& source, std::uint64_t heap, std::uint64_t tree) {
  FractalHeap objects(source, heap);
  std::vector<std::string> links;
  constexpr std::size_t hash = 4;  // bytes of the name's hash before the identifier
  for (const std::string& record : Records(source, tree).records) {
    if (record.size() <= hash) source.damaged("a tree of names has no names");
    links.push_back(objects.object(record.substr(hash)));
  }
  return links;
}

}  // namespace trainctl
