// Reads the subset of the HDF5 format that Keras writes: groups, text attributes, and contiguous data sets of numbers.
//
// The format is specified at https://docs.hdfgroup.org. The reader supports superblock versions 0 and 1 and object
// headers of version 1. Groups may be symbol tables or links, which HDF5 writes for names that are not ASCII; data sets
// may be contiguous or compact. h5py writes these by default; files with newer layouts, chunks or compression are
// refused with an error that names the feature.
//
// trainctl does not use the HDF5 library, which aborts or hangs for some damaged files. This reader reports every
// damaged file as an error, which tests with mutated files check, and can read data sets in any order.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/tensor/dtype.h"
#include "core/tensor/shape.h"
#include "io/weights/hdf5_source.h"

namespace trainctl {

// An HDF5 file open for reading. Memory and work are in proportion to the file's size, even if its objects share data:
// a file is refused if its bytes would be read too often.
class Hdf5File {
 public:
  // A data set of floating-point numbers.
  struct DataSet {
    std::string path;  // "layers/dense/vars/0"
    Shape shape;
    DType dtype = DType::float32;
    std::int64_t offset = 0;  // offset in the file; negative: never written, all zeros
  };

  // `shown` is the file's name in messages. Throws Error{data}.
  Hdf5File(Bytes file, std::string shown);

  // Data sets of floating-point numbers in all groups, in order of their paths.
  const std::vector<DataSet>& data_sets() const { return data_sets_; }
  // Returns the text of a group's attribute; no value if there is no such group or attribute, or the attribute is no
  // text.
  std::optional<std::string> text_attribute(const std::string& group, const std::string& name) const;
  // Returns a list of texts that is an attribute of a group; empty if there is none. Keras splits a long list into
  // several attributes with numbers appended to the name.
  std::vector<std::string> text_list(const std::string& group, const std::string& name) const;
  // Reads a data set as float32.
  void read(const DataSet& data_set, float* to) const;

 private:
  struct Object;

  Object read_object(std::int64_t address);
  void read_attribute(Hdf5Fields message, Object& object);
  std::string global_text(std::int64_t address, std::uint64_t index, std::uint64_t length);
  std::string name_at(std::int64_t heap, std::uint64_t offset) const;
  void add_link(Hdf5Fields message, Object& object);
  void read_group(const std::string& path, const Object& group, int depth);
  void read_node(std::int64_t address, std::int64_t heap, int level, const std::string& path, int depth);
  void read_member(const std::string& path, const std::string& name, std::int64_t address, int depth);
  void add_data_set(const std::string& path, const Object& object);

  Hdf5Source source_;
  std::vector<DataSet> data_sets_;
  std::map<std::pair<std::string, std::string>, std::vector<std::string>> texts_;  // key: group and attribute
};

}  // namespace trainctl
