// Computes the hash of tensors that are sharded over the ranks.
#pragma once

#include <span>
#include <string>

#include "parallel/checkpoint/shard_plan.h"

namespace trainctl {

class Communicator;
class Stream;

// Returns weights_sha256() of the whole tensors on rank 0, and "" on the other ranks. `held`: the tensors or shards
// that this rank holds. All ranks must call this function; they send their shards to rank 0, one tensor at a time.
std::string gathered_sha256(const ShardPlan& plan, std::span<const NamedTensor> held, Communicator& world,
                            Stream& stream);

}  // namespace trainctl
