// The sum of several tensors, with additions in the order of a binary tree.
#pragma once

#include <vector>

#include "core/graph/op.h"

namespace trainctl {

// The maximum number of summands of one sum.
inline constexpr int max_summands = 256;

// A summand: an input or a part of an input. The sum is evaluated with a stack: each summand is pushed, and then,
// `merges` times, the two values on top are replaced by their sum.
struct Summand {
  int input = 0;
  int part = 0;  // index of the part; parts have the length of the output. 0 for an input without parts
  int merges = 0;

  bool operator==(const Summand&) const = default;
};

// y = the sum of the summands in float32, with the same order of additions for each element. Inputs: float32 [n] or
// [parts * n]; the last input always has [parts * n]. Outputs: float32 [n], which may use the memory of an input or of
// one of its parts. If `across`, the parts of an input were received from the ranks of the axis, inputs without parts
// are earlier sums of such parts, and y is the rank's shard of a sum over all ranks. Otherwise all summands are the
// rank's own.
struct TreeSum final : OpDef {
  std::vector<Summand> summands;
  int parts = 1;  // number of parts of the last input
  bool across = false;
  MeshAxis axis = MeshAxis::data;

  TreeSum(std::vector<Summand> s, int p = 1, bool over_ranks = false)
      : summands(std::move(s)), parts(p), across(over_ranks) {}
  std::string_view kind() const override { return "tree_sum"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
  double flops(std::span<const TensorType> inputs, std::span<const TensorType> outputs) const override;
};

}  // namespace trainctl
