// The initial values of a network.
#pragma once

#include <cstdint>
#include <vector>

#include "core/exec/interfaces/snapshot.h"
#include "core/program/build.h"

namespace trainctl {

// Writes those of all parameters and statistics into memory that has their names and sizes; the same on every rank.
void initialize_weights(const ProgramSpec& spec, std::uint64_t seed, const std::vector<NamedTensor>& weights);

}  // namespace trainctl
