// The exchange of reproducible mode: replicas that keep whole gradients add the sums that each of them computed.
#pragma once

#include <optional>
#include <vector>

#include "core/graph/mesh.h"
#include "core/graph/ops/training/update.h"
#include "parallel/strategies/reproducible/slot_tensors.h"
#include "parallel/strategies/reproducible/tree.h"

namespace trainctl {

// Creates the ops of the exchange of one step, after all passes. Over the data axis each replica sends to every other
// replica that replica's shard of the computed sums (all_to_all). Then each replica adds the received shards in the
// order of the tree, and the results are gathered. Received tensors are stored in slots without sums or with sums that
// have been sent, or in the arena if there are no such slots. The gaps between gradients in these slots are set to zero
// afterwards. Two replicas with one sum each reduce as in the fast mode.
class SumExchange {
 public:
  // `own`: the sums that this replica computed. References must outlive the exchange.
  SumExchange(Program& program, SlotTensors& slots, const MeshRank& rank, std::vector<LeafSum> own);

  // Exchanges `count` elements, which contain the tensors one after the other: gradients, sums, or both. The result is
  // written to `own_shard`, this replica's shard of the elements; if `own_shard` is no_tensor, it is written to the
  // tensors.
  void add(const std::vector<TensorId>& tensors, std::int64_t count, TensorId own_shard);
  std::vector<Op> take() { return std::move(ops_); }

 private:
  TensorId received(std::size_t round, const std::vector<TensorId>& tensors, std::int64_t count,
                    std::optional<int> slot);
  TensorId whole(const std::vector<TensorId>& tensors, std::int64_t count, int slot);
  void reduce_two(const std::vector<TensorId>& tensors, std::int64_t count, TensorId own_shard);
  std::vector<ZeroGaps::Gap> gaps_of(const std::vector<TensorId>& tensors, std::int64_t count) const;

  Program& program_;
  SlotTensors& slots_;
  int replica_, replicas_;
  ParameterLayout layout_;  // layout with assigned offsets
  std::vector<LeafSum> own_;
  // The order of the sums of all replicas. Summand::input is the round of a sum, Summand::part its replica.
  std::vector<Summand> order_;
  std::size_t rounds_ = 0;  // largest number of sums of a replica; it sends one sum in each round
  std::vector<Op> ops_;
};

}  // namespace trainctl
