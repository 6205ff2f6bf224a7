// The hash of tensors of which every rank holds parts.
#pragma once

#include <span>
#include <string>

#include "parallel/checkpoint/shard_plan.h"

namespace trainctl {

class Communicator;
class Stream;

// The hash of the whole tensors as weights_sha256() has it, on rank 0; "" on the others. `held`: what this rank holds
// of them. Every part travels to rank 0, one tensor at a time. Collective.
std::string gathered_sha256(const ShardPlan& plan, std::span<const NamedTensor> held, Communicator& world,
                            Stream& stream);

}  // namespace trainctl
