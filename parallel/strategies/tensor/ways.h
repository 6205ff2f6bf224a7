// Finds the ways to share an op among the ranks along the tensor axis, from the op's placement rule alone.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "core/graph/op.h"

namespace trainctl {

// One entry for each operand of an op: the dimension along which it is divided among the ranks. An operand without such
// a dimension is whole on every rank.
using SplitDimensions = std::vector<std::optional<int>>;

// How the ranks share the work of an op, from the best way to the worst.
enum class Sharing {
  local,      // each rank computes its shard of each output from its shards of activations
  sum,        // each rank computes a summand of the output from its shards; the ranks then add the summands
  begin_sum,  // each rank computes a summand of the output from whole activations and its shards of the parameters
  begin,      // each rank computes its shard of each output from whole activations and its shards of the parameters
  none        // the op runs whole on every rank
};

// An input of an op.
struct Operand {
  TensorType type;               // type of the whole tensor
  bool is_parameter = false;     // whether it is a parameter or a running statistic
  bool is_reused = false;        // whether it is a whole parameter that several ops read: only beginning ops split it
  bool may_be_whole = false;     // whether the ranks may add their gradients of it, if it is a parameter
  SplitDimensions alternatives;  // ways in which a rank can have the operand
};

struct Way {
  Sharing sharing = Sharing::none;
  std::shared_ptr<const OpDef> def;  // the op on a rank's shards
  SplitDimensions inputs, outputs;   // a sum has no bias here, since it is added to the sum (OpDef::bias())
};

// Returns the best way to share an op of the whole graph: the first kind of Sharing such that the op's placement rule
// accepts a combination of the operands' alternatives. If the number of ranks does not divide a dimension among the
// alternatives, the shards differ by one element. An op that runs on shards has no whole parameter, since the
// parameter's gradient would be a sum over the ranks, unless Operand::may_be_whole permits it.
Way best_way(const Op& op, const std::vector<Operand>& operands, const std::vector<TensorType>& outputs,
             const ShardPosition& ranks);

}  // namespace trainctl
