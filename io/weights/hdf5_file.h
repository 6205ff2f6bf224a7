// The part of the HDF5 format that Keras writes: groups, text attributes, and data sets of numbers in one piece.
//
// The format is specified at https://docs.hdfgroup.org. Read are superblock versions 0 and 1, object headers of version
// 1, groups as symbol tables, and data sets that are contiguous or compact: what h5py writes unless it is asked for
// newer layouts, chunks or compression, which are refused by name. The HDF5 library itself is not used: it ends the
// process, or never returns, for some damaged files.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/tensor/dtype.h"
#include "core/tensor/shape.h"
#include "io/datasets/arrays/bytes.h"

namespace trainctl {

// An HDF5 file open for reading. Memory and work stay in proportion to the file's size, whatever its objects share: a
// file that makes the reader take the same bytes again and again is refused.
class Hdf5File {
 public:
  // Fractional numbers.
  struct DataSet {
    std::string path;  // "layers/dense/vars/0"
    Shape shape;
    DType dtype = DType::float32;
    std::int64_t offset = 0;  // in the file; negative: never written, all zeros
  };

  // `shown` is the file's name in messages. Throws Error{data}.
  Hdf5File(Bytes file, std::string shown);

  // Data sets of fractional numbers, in all groups, by path.
  const std::vector<DataSet>& data_sets() const { return data_sets_; }
  // The text of a group's attribute; nothing where there is no such group or attribute, or one that is no text.
  std::optional<std::string> text_attribute(const std::string& group, const std::string& name) const;
  // Reads a data set as float32.
  void read(const DataSet& data_set, float* to) const;

 private:
  struct Object;
  class Fields;

  [[noreturn]] void damaged(const std::string& what) const;
  [[noreturn]] void unknown(const std::string& what) const;
  void count_block();
  void spend(std::uint64_t bytes) const;
  Object read_object(std::int64_t address);
  void read_attribute(Fields message, Object& object);
  std::string global_text(std::int64_t address, std::uint64_t index, std::uint64_t length);
  std::string name_at(std::int64_t heap, std::uint64_t place) const;
  void read_group(const std::string& path, const Object& group, int depth);
  void read_node(std::int64_t address, std::int64_t heap, int level, const std::string& path, int depth);
  void add_data_set(const std::string& path, const Object& object);

  Bytes file_;
  std::string shown_;
  std::int64_t blocks_ = 0;         // read so far
  mutable std::uint64_t left_ = 0;  // bytes that may still be read of headers, names and texts
  std::vector<DataSet> data_sets_;
  std::map<std::pair<std::string, std::string>, std::string> texts_;  // attributes, by group and name
};

}  // namespace trainctl
