// Adds a bias after a transposed convolution, or after a product that is summed over ranks, where the bias is added
// once, to the sum. Other products add their bias themselves.
// Biases are float32 parameters; x, y and dy share one dtype (float32, bfloat16, float16).
#pragma once

#include "core/graph/ops/elementwise/activations.h"

namespace trainctl {

// y = f(x + bias). Inputs: x [N..., C], bias [C]. Outputs: y, like x. In place.
struct AddBias final : OpDef {
  ActivationFunction function;  // set by the fusion pass

  explicit AddBias(ActivationFunction f = {}) : function(f) {}
  std::string_view kind() const override { return "add_bias"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
  std::vector<InPlace> in_place() const override { return {{0, 0}}; }
  std::optional<Op> fused_with(const Op& op, const Op& reader, std::size_t operand) const override;
  void differentiate(const Op& op, Differentiator& differentiator) const override;
};

// dbias (+)= sum of dy over rows. Inputs: dy [N..., C]. Outputs: dbias float32 [C].
struct BiasGrad final : OpDef {
  bool accumulate = false;  // add to the output instead of overwriting it (micro-batches after the first)

  explicit BiasGrad(bool add) : accumulate(add) {}
  std::string_view kind() const override { return "bias_grad"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
  double flops(std::span<const TensorType> inputs, std::span<const TensorType> outputs) const override;
};

}  // namespace trainctl
