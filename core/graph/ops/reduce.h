// Sums and extremes over dimensions of a tensor.
#pragma once

#include <string>
#include <vector>

#include "core/graph/op.h"

namespace trainctl {

enum class ReduceKind { sum, maximum, minimum };

// y = scale * the sum (or the largest or smallest value) of x over the dimensions [begin, end), which y does not have,
// or has with size 1 if `keep` is set. (+)=. Without dimensions, y is a copy. The order of additions depends only on
// the shape. NaN in x is NaN in y. Inputs: x, float32, bfloat16 or float16. Outputs: y of `dtype`.
struct Reduce final : OpDef {
  ReduceKind reduction = ReduceKind::sum;
  int begin = 0, end = 0;
  bool keep = false;
  float scale = 1;  // of sums
  DType dtype = DType::float32;
  bool accumulate = false;  // add to the output instead of overwriting it; for sums
  // Whether ranks may hold shards of the dimensions of a sum, so that their sums are partial. The gradient of such a
  // sum is not supported: its placement would not follow from the placements of its inputs.
  bool splits = false;

  Reduce(ReduceKind of, int first, int last) : reduction(of), begin(first), end(last) {}
  std::string_view kind() const override { return "reduce"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
  double flops(std::span<const TensorType> inputs, std::span<const TensorType> outputs) const override;
  void differentiate(const Op& op, Differentiator& differentiator) const override;
};

// Appends the ops that sum `gradient` over the dimensions along which `input` was broadcast, and adds `scale` times the
// sum to the gradient of the input of `op`. `scale` is 1 if nothing is summed.
void contribute_broadcast(const Op& op, TensorId input, TensorId gradient, float scale, Differentiator& differentiator);

}  // namespace trainctl
