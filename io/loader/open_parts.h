// The parts of a run's data, opened: their data sets, and which samples each part has.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "io/loader/options.h"
#include "io/loader/order.h"

namespace trainctl {

// A part of the data, opened: its data sets, and which of their samples it has.
struct OpenedPart {
  DatasetGroup group;
  Subset subset;
};

// Training, validation and test, as far as the config names them.
using OpenedParts = std::array<std::optional<OpenedPart>, 3>;

// Throws Error{data}, {config} or {resource}.
OpenedParts open_parts(const DataOptions& options, std::uint64_t seed, const DataUse& use);

// What the config states of an input's samples and of an output's targets, by the model's names.
std::optional<Shape> stated_shape(const DataOptions& options, const std::string& input);
std::optional<std::int64_t> stated_classes(const DataOptions& options, const std::string& output);

}  // namespace trainctl
