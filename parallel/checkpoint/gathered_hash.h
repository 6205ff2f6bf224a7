// Computes the hash of tensors whose shards are held by different ranks.
#pragma once

#include <span>
#include <string>

#include "parallel/checkpoint/shard_plan.h"

namespace trainctl {

class Communicator;
class Stream;

// Returns weights_sha256() of the whole tensors on rank 0, and "" on the other ranks. `held`: the tensors or shards
// that this rank holds. Every shard is sent to rank 0, one tensor at a time. Collective.
std::string gathered_sha256(const ShardPlan& plan, std::span<const NamedTensor> held, Communicator& world,
                            Stream& stream);

}  // namespace trainctl
