// Data sets of one form, one after another: what several paths name.
#pragma once

#include <vector>

#include "io/datasets/dataset.h"

namespace trainctl {

// The groups, of which there is one at least, as one: their samples in order. All have the same inputs and targets.
// Classes are those of the numbers that all use. With `any_size` samples are images that may differ in height and
// width. Throws Error{data} that names the first group that differs from the first of all in what its samples are.
DatasetGroup concatenated(const std::vector<DatasetGroup>& groups, bool any_size);

}  // namespace trainctl
