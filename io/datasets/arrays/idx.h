// The IDX format of MNIST: two zero bytes, element type, number of dimensions, sizes (32 bits), values; all big-endian.
#pragma once

#include <memory>
#include <string>

#include "io/datasets/arrays/array.h"

namespace trainctl {

// Reads an .idx file, which may be compressed with gzip. Throws Error{data} for a wrong magic number, impossible or
// wrong sizes, and truncated or damaged content.
Array read_idx(const std::string& path);

// Makes a data set of two IDX files. Images [n, h, w] become samples [h, w, 1]; images [n, h, w, c] and rows [n, k]
// keep their shape.
std::shared_ptr<const Dataset> idx_dataset(const std::string& images, const std::string& labels,
                                           const DeclaredInfo& declared);

// Returns the path of one of MNIST's files in a folder; "" if there is none. `name` is the file's name in the
// distribution, such as "train-images-idx3-ubyte". Names with a dot instead of the dash before "idx" or with .gz at the
// end are also found, and files in a subfolder of that name.
std::string mnist_file(const std::string& folder, const std::string& name);

// Returns the paths of MNIST's files in a folder; `prefix` is "train" or "t10k". Throws Error{data} if one is missing,
// except for the labels if these are optional.
struct IdxFiles {
  std::string images, labels;
};
IdxFiles find_mnist_files(const std::string& folder, const std::string& prefix, bool labels_optional = false);

}  // namespace trainctl
