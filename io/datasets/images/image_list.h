// Images without classes, named one by one or by their folders: what a trained network is asked about.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "io/datasets/dataset.h"

namespace trainctl {

// A data set of images alone (DatasetFacts::target [0]): files in the order of the list, those of a folder and of the
// folders below it in bytewise order. Decoded to the channels of the training split's samples. Throws Error{data} where
// a path is missing, or a folder has no images.
std::shared_ptr<const Dataset> image_list(const std::vector<std::string>& paths, const StatedFacts& stated);

}  // namespace trainctl
