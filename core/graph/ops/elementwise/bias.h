// A bias behind a transposed convolution, or behind a product of which each rank has computed a summand: it is added
// once, to the sum. (Other products take their bias themselves.)
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
  bool accumulate = false;  // add to what the output holds (micro-batches after the first)

  explicit BiasGrad(bool add) : accumulate(add) {}
  std::string_view kind() const override { return "bias_grad"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
  double flops(std::span<const TensorType> inputs, std::span<const TensorType> outputs) const override;
};

}  // namespace trainctl
