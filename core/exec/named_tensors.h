// Names for what lies in flat regions: the tensors of checkpoints and hashes, bytewise by name.
#pragma once

#include <vector>

#include "core/exec/interfaces/snapshot.h"
#include "core/program/program.h"

namespace trainctl {

// Parameters and running statistics, as views of memory in the flat layout.
std::vector<NamedTensor> name_weights(const Program& program, float* parameters, float* statistics);

// Optimizer state of the trainable parameters, "momentum/conv1/kernel"; `states` holds one region behind the other.
std::vector<NamedTensor> name_state(const Program& program, float* states);

}  // namespace trainctl
