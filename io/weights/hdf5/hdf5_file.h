// The home of the HDF5 library: the data sets of a file, by path.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/tensor/shape.h"

namespace trainctl {

// An HDF5 file open for reading. All its own, and of memory what its headers take: data sets in other files, links
// between files, and chunks larger than their data set are refused. Used by one thread at a time.
class Hdf5File {
 public:
  struct DataSet {
    std::string path;  // "layers/dense/vars/0"
    Shape shape;
  };

  // `shown` is the file's name in messages. Throws Error{data}.
  Hdf5File(const std::string& path, std::string shown);
  ~Hdf5File();
  Hdf5File(const Hdf5File&) = delete;
  Hdf5File& operator=(const Hdf5File&) = delete;

  // Data sets of fractional numbers, in all groups.
  const std::vector<DataSet>& data_sets() const { return data_sets_; }
  // The text of a group's attribute; nothing where it has none of this name, or one that is no text.
  std::optional<std::string> text_attribute(const std::string& group, const std::string& name) const;
  // Reads a data set as float32.
  void read(const DataSet& data_set, float* to) const;

  [[noreturn]] void damaged(const std::string& what) const;

 private:
  void list(const std::string& group, int depth);
  void add(const std::string& path);

  std::string shown_;
  std::int64_t file_ = -1;   // the library's number of the open file
  std::size_t objects_ = 0;  // met so far
  std::vector<DataSet> data_sets_;
};

}  // namespace trainctl
