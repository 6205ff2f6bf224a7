// Gated linear units (Dauphin et al., 2017; Shazeer, 2020): the product of a tensor and an activation of another one.
#pragma once

#include <string_view>
#include <vector>

#include "core/graph/ops/elementwise/activations.h"

namespace trainctl {

// y = f(gate) * up, equal shapes. Inputs: gate, up. Outputs: y. In place on either.
struct GatedLinearUnit final : OpDef {
  ActivationFunction function;

  explicit GatedLinearUnit(ActivationFunction f) : function(f) {}
  std::string_view kind() const override { return "gated_linear_unit"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
  double flops(std::span<const TensorType> inputs, std::span<const TensorType> outputs) const override;
  std::vector<InPlace> in_place() const override { return {{0, 0}, {1, 0}}; }
  void differentiate(const Op& op, Differentiator& differentiator) const override;
};

// dgate = dy * up * f'(gate), dup = dy * f(gate). Inputs: dy, gate, up. Outputs: dgate, dup, like dy. In place on any
// input.
struct GatedLinearUnitGrad final : OpDef {
  ActivationFunction function;

  explicit GatedLinearUnitGrad(ActivationFunction f) : function(f) {}
  std::string_view kind() const override { return "gated_linear_unit_grad"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
  double flops(std::span<const TensorType> inputs, std::span<const TensorType> outputs) const override;
  std::vector<InPlace> in_place() const override { return {{1, 0}, {2, 1}, {0, 0}, {0, 1}}; }
};

}  // namespace trainctl
