// Named views of the tensors in flat regions, bytewise by name, for checkpoints and hashes.
#pragma once

#include <vector>

#include "core/exec/interfaces/snapshot.h"
#include "core/program/program.h"

namespace trainctl {

// Parameters and running statistics, as views of memory in the flat layout: `trainable`, `frozen` and `statistics` are
// the starts of what the rank holds of them.
std::vector<NamedTensor> name_weights(const Program& program, float* trainable, float* frozen, float* statistics);

// The optimizer's state of the trainable parameters, "momentum/conv1/kernel"; `states` holds the regions of the
// program's states one behind the other. Where the weights are moving averages, also the parameters themselves,
// "latest/conv1/kernel", which `latest` holds. Either may be null, and is then left out.
std::vector<NamedTensor> name_state(const Program& program, float* states, float* latest);

// The reduced gradients, by the names of their parameters. `gradients` holds those that the rank has: all in the flat
// layout or, where replicas share the update, its parts of the buckets one behind the other.
std::vector<NamedTensor> name_gradients(const Program& program, float* gradients);

}  // namespace trainctl
