// Writes the subset of the HDF5 format that hdf5_file.h reads: groups, lists of names as attributes, float32 data sets.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/tensor/shape.h"
#include "io/checkpoint/atomic_file.h"

namespace trainctl {

struct Hdf5DataSet {
  Shape shape;
  const float* values = nullptr;  // not owned
};

struct Hdf5Group {
  std::map<std::string, Hdf5Group> groups;
  std::map<std::string, Hdf5DataSet> data_sets;
  std::map<std::string, std::vector<std::string>> names;  // attributes; each at most 64 kB long
};

// Writes superblock version 0, object headers of version 1, groups as symbol tables, and contiguous data sets.
void write_hdf5(OutputFile& file, const Hdf5Group& root);

}  // namespace trainctl
