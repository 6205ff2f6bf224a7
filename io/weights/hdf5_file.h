// The part of the HDF5 format that Keras writes: groups, text attributes, and data sets of numbers in one piece.
//
// The format is specified at https://docs.hdfgroup.org. Read are superblock versions 0 and 1, object headers of version
// 1, groups as symbol tables or as links (which HDF5 writes for names that are not ASCII), and data sets that are
// contiguous or compact: what h5py writes unless it is asked for newer layouts, chunks or compression, which are
// refused by name.
//
// trainctl reads HDF5 without the HDF5 library, which ends the process, or never returns, for some damaged files: this
// reader is tested with damaged files, of which it reports each as one error, and reads data sets at random offsets.
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
  // A group's list of texts, which is in several attributes with numbers behind the name if it is long, as Keras writes
  // it; empty if there is none.
  std::vector<std::string> text_list(const std::string& group, const std::string& name) const;
  // Reads a data set as float32.
  void read(const DataSet& data_set, float* to) const;

 private:
  struct Object;

  Object read_object(std::int64_t address);
  void read_attribute(Hdf5Fields message, Object& object);
  std::string global_text(std::int64_t address, std::uint64_t index, std::uint64_t length);
  std::string name_at(std::int64_t heap, std::uint64_t place) const;
  void add_link(Hdf5Fields message, Object& object);
  void read_group(const std::string& path, const Object& group, int depth);
  void read_node(std::int64_t address, std::int64_t heap, int level, const std::string& path, int depth);
  void read_member(const std::string& path, const std::string& name, std::int64_t address, int depth);
  void add_data_set(const std::string& path, const Object& object);

  Hdf5Source source_;
  std::vector<DataSet> data_sets_;
  std::map<std::pair<std::string, std::string>, std::vector<std::string>> texts_;  // attributes, by group and name
};

}  // namespace trainctl
