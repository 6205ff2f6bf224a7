// The exchange of reproducible mode: replicas that keep whole gradients add the sums that each of them formed.
#pragma once

#include <optional>
#include <vector>

#include "core/graph/mesh.h"
#include "core/graph/ops/training/update.h"
#include "parallel/strategies/reproducible/slot_tensors.h"
#include "parallel/strategies/reproducible/tree.h"

namespace trainctl {

// The exchange of one step, as ops behind all passes. Over the data axis each replica sends every other one its part of
// the sums that it formed (all_to_all), each adds what it received in the order of the tree, and the parts are
// gathered. What a replica receives lies in slots without sums and in those whose sums it has sent, and in the arena
// where there are none; the gaps between gradients in these slots are zero again behind it. Two replicas with one sum
// each reduce as in the fast mode.
class SumExchange {
 public:
  // `own`: the sums that this replica formed. References must outlive the exchange.
  SumExchange(Program& program, SlotTensors& slots, const MeshRank& rank, std::vector<LeafSum> own);

  // Exchanges `count` elements, in which the tensors lie one behind the other: gradients, or sums, or both. The result
  // is put into `own_part`, this replica's part of them, or with no_tensor into the tensors themselves.
  void add(const std::vector<TensorId>& tensors, std::int64_t count, TensorId own_part);
  std::vector<Op> take() { return std::move(ops_); }

 private:
  TensorId received(std::size_t round, const std::vector<TensorId>& tensors, std::int64_t count,
                    std::optional<int> slot);
  TensorId whole(const std::vector<TensorId>& tensors, std::int64_t count, int slot);
  void reduce_two(const std::vector<TensorId>& tensors, std::int64_t count, TensorId own_part);
  std::vector<ZeroGaps::Gap> gaps_of(const std::vector<TensorId>& tensors, std::int64_t count) const;

  Program& program_;
  SlotTensors& slots_;
  int replica_, replicas_;
  ParameterLayout layout_;  // with offsets
  std::vector<LeafSum> own_;
  std::vector<Summand> order_;  // of the sums of all replicas: their inputs are rounds, their parts replicas
  std::size_t rounds_ = 0;      // the most sums that a replica has, one of which it sends in each round
  std::vector<Op> ops_;
};

}  // namespace trainctl
