// The IDX format of MNIST: two zero bytes, element type, number of dimensions, sizes (32 bits), values; all big-endian.
#pragma once

#include <memory>
#include <string>

#include "io/datasets/array.h"

namespace trainctl {

// Reads an .idx or .gz file. Throws Error{data}: wrong magic number, impossible or wrong sizes, truncated or damaged.
Array read_idx(const std::string& path);

// Images [n, h, w] become samples [h, w, 1]; [n, h, w, c] and rows [n, k] stay.
std::shared_ptr<const Dataset> idx_dataset(const std::string& images, const std::string& labels,
                                           const StatedFacts& stated);

// The files of MNIST's naming in a folder: "train" or "t10k", with or without .gz.
struct IdxFiles {
  std::string images, labels;
};
IdxFiles find_mnist_files(const std::string& folder, const std::string& prefix);

}  // namespace trainctl
