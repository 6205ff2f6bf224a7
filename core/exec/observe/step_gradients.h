// Reads the gradients of the last step.
#pragma once

#include <vector>

#include "core/exec/engine.h"

namespace trainctl {

// The reduced gradients that this rank holds after a step of a training program, by the names of their parameters,
// sorted bytewise. They are sums over the samples, times the loss scale. The values are copied to `memory`. No later
// step may have begun.
std::vector<NamedTensor> read_gradients(Engine& engine, int program, std::vector<float>& memory);

}  // namespace trainctl
