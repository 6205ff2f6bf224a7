// Reads the members of a large HDF5 group of the newer kind: links in a fractal heap, listed by a tree.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "io/weights/hdf5_source.h"

namespace trainctl {

// Returns the link messages of a group. `heap` and `tree` are the addresses of its fractal heap and of its tree of
// names (a B-tree of version 2). Throws Error{data}.
std::vector<std::string> dense_links(Hdf5Source& source, std::uint64_t heap, std::uint64_t tree);

}  // namespace trainctl
