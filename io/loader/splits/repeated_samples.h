// Finds validation and test samples that are training samples.
#pragma once

#include <string>
#include <vector>

#include "io/loader/splits/open_splits.h"

namespace trainctl {

// Returns a warning with its remedy for each held-out split that reads a file or folder of the training split, under
// any name (a link is the same file), or whose samples are a copy of the training samples.
std::vector<std::string> repeated_samples(const DataOptions& options, const OpenedSplits& splits);

}  // namespace trainctl
