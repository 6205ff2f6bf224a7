// The IDX format of MNIST: two zero bytes, element type, number of dimensions, sizes (32 bits), values; all big-endian.
#pragma once

#include <memory>
#include <string>

#include "io/datasets/arrays/array.h"

namespace trainctl {

// Reads an .idx file, which may be compressed with gzip. Throws Error{data}: wrong magic number, impossible or wrong
// sizes, truncated or damaged content.
Array read_idx(const std::string& path);

// A data set of two IDX files. Images [n, h, w] become samples [h, w, 1]; images [n, h, w, c] and rows [n, k] keep
// their shape.
std::shared_ptr<const Dataset> idx_dataset(const std::string& images, const std::string& labels,
                                           const DeclaredInfo& declared);

// The path of one of MNIST's files in a folder; "" where it is not there. `name` is that of the distribution, such as
// "train-images-idx3-ubyte"; a dot for the dash before "idx", .gz at the end, and a folder of that name around the file
// are known too.
std::string mnist_file(const std::string& folder, const std::string& name);

// The paths of MNIST's files in a folder; `prefix` is "train" or "t10k". Throws Error{data} where one is missing, other
// than labels that may lack.
struct IdxFiles {
  std::string images, labels;
};
IdxFiles find_mnist_files(const std::string& folder, const std::string& prefix, bool may_lack_labels = false);

}  // namespace trainctl
