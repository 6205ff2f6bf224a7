// Joins the data sets of several paths into one.
#pragma once

#include <vector>

#include "io/datasets/dataset.h"

namespace trainctl {

// Joins one or more groups into one group that has their samples in order. All groups have the same inputs and targets,
// and use the same class numbers. With `any_size`, samples are images that may differ in height and width. Throws
// Error{data} that names the first group whose samples differ from those of groups[0] in shape, type, targets or
// weights.
DatasetGroup concatenated(const std::vector<DatasetGroup>& groups, bool any_size);

}  // namespace trainctl
