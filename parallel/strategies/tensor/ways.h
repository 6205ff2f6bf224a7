// The ways in which the ranks along the tensor axis can share an op, found by the op's placement rule alone.
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
  local,  // each rank works on its parts of activations, and has its part of each output
  sum,    // each rank computes a summand of the output from its parts; the ranks then add up the summands
  begin,  // each rank computes its part of each output from whole activations and its parts of the parameters
  none    // the op runs whole on every rank
};

// An input of an op.
struct Operand {
  TensorType type;               // whole
  bool is_parameter = false;     // or a running statistic
  bool is_reused = false;        // a parameter that several ops read and that is whole so far: only `begin` splits it
  SplitDimensions alternatives;  // in which a rank can have the operand
};

struct Way {
  Sharing sharing = Sharing::none;
  std::shared_ptr<const OpDef> def;  // what the op is on a rank's part
  SplitDimensions inputs, outputs;   // of a sum: without the bias, which is added to the sum (OpDef::bias())
};

// The best way to share an op of the whole graph: the first kind of Sharing for which the op's placement rule has a
// combination of the operands' alternatives. The ranks divide every dimension that is split. No parameter is whole in
// an op that works on parts, since the gradient of the parameter would be a sum over the ranks.
Way best_way(const Op& op, const std::vector<Operand>& operands, const std::vector<TensorType>& outputs,
             const ShardPosition& ranks);

}  // namespace trainctl
