// Opens the splits of a run's data: their data sets, and the samples of each split.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "io/datasets/dataset.h"
#include "io/loader/splits/order.h"

namespace trainctl {

struct DataOptions;
struct DataUse;

// An opened split of the data: its data sets, and the subset of their samples that belongs to the split.
struct OpenedSplit {
  DatasetGroup group;
  Subset subset;
  std::vector<bool> unused = {};  // for each target of the group: whether the network does not read it
};

// The splits, indexed by SplitKind: training, validation and test; empty for a split that the config does not name.
using OpenedSplits = std::array<std::optional<OpenedSplit>, 3>;

// Opens all splits that the config names. Throws Error{data}, {config} or {resource}.
OpenedSplits open_splits(const DataOptions& options, std::uint64_t seed, const DataUse& use);

// Return the shape of an input's samples and the number of an output's classes in the config. `input` and `output` are
// names in the model. The result is empty if the config does not set the value.
std::optional<Shape> declared_shape(const DataOptions& options, const std::string& input);
std::optional<std::int64_t> declared_classes(const DataOptions& options, const std::string& output);

}  // namespace trainctl
