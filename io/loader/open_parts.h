// The opened parts of a run's data: their data sets, and the samples of each part.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "io/loader/options.h"
#include "io/loader/order.h"

namespace trainctl {

// An opened part of the data: its data sets, and the subset of their samples that it has.
struct OpenedPart {
  DatasetGroup group;
  Subset subset;
};

// By PartKind: training, validation and test; nothing for a part that the config does not name.
using OpenedParts = std::array<std::optional<OpenedPart>, 3>;

// Opens all parts that the config names. Throws Error{data}, {config} or {resource}.
OpenedParts open_parts(const DataOptions& options, std::uint64_t seed, const DataUse& use);

// The shape of an input's samples and the number of an output's classes that the config states, by the model's names.
std::optional<Shape> stated_shape(const DataOptions& options, const std::string& input);
std::optional<std::int64_t> stated_classes(const DataOptions& options, const std::string& output);

}  // namespace trainctl
