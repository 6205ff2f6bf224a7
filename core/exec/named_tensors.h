// Named views of the tensors in flat regions, bytewise by name, for checkpoints and hashes.
#pragma once

#include <vector>

#include "core/exec/interfaces/snapshot.h"
#include "core/program/program.h"

namespace trainctl {

// Parameters and running statistics, as views of memory in the flat layout: `trainable`, `frozen` and `statistics` are
// the addresses of the values that the rank holds.
std::vector<NamedTensor> name_weights(const Program& program, float* trainable, float* frozen, float* statistics);

// The optimizer's state of the trainable parameters, such as "momentum/conv1/kernel"; `states` holds the program's
// states one after the other. If the weights are moving averages, the result also has the parameters themselves, such
// as "latest/conv1/kernel", which `latest` holds. If a pointer is null, its tensors are left out.
std::vector<NamedTensor> name_state(const Program& program, float* states, float* latest);

// The reduced gradients, by the names of their parameters. `gradients` holds the rank's gradients: all of them in the
// flat layout or, if replicas share the update, the rank's shards of the buckets one after the other.
std::vector<NamedTensor> name_gradients(const Program& program, float* gradients);

}  // namespace trainctl
