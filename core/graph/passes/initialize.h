// Computes the initial values of parameters.
#pragma once

#include <cstdint>

#include "core/graph/graph.h"

namespace trainctl {

// Writes the initial values of a parameter to `values`, one float for each element. They depend only on (seed, name,
// element), so that they are equal on every rank and in every run.
void initialize(const GraphParameter& parameter, const Tensor& tensor, std::uint64_t seed, float* values);

}  // namespace trainctl
