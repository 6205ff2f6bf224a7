// The sum of several tensors in an order that is a binary tree.
#pragma once

#include <vector>

#include "core/graph/op.h"

namespace trainctl {

// The most summands of one sum.
inline constexpr int most_summands = 256;

// One of the summands: an input, or a part of it. The sum is evaluated with a stack: each summand is put on it, and
// then `merges` times the two values on top become their sum.
struct Summand {
  int input = 0;
  int part = 0;  // of the parts, each as long as the output, that lie one behind the other in the input; else 0
  int merges = 0;

  bool operator==(const Summand&) const = default;
};

// y = the sum of the summands, each element in the same order of additions, in float32. Inputs: float32 [parts * n],
// the last one in any case, or [n]. Outputs: float32 [n], which may lie in the memory of an input or of one of its
// parts. With `across` the parts are those that the ranks of the axis sent this rank, inputs without parts are such
// sums of earlier ones, and y is the rank's part of a sum over all ranks; without, all summands are the rank's own.
struct TreeSum final : OpDef {
  std::vector<Summand> summands;
  int parts = 1;  // of the last input
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
