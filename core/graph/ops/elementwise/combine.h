// Elementwise products, extremes and multiples of tensors. Sums are in core/graph/ops/elementwise/activations.h.
#pragma once

#include <string_view>
#include <vector>

#include "core/graph/op.h"

namespace trainctl {

// y = a * b, equal shapes. Inputs: a, b. Outputs: y. In place on either.
struct Multiply final : OpDef {
  std::string_view kind() const override { return "multiply"; }
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
  std::vector<InPlace> in_place() const override { return {{0, 0}, {1, 0}}; }
  void differentiate(const Op& op, Differentiator& differentiator) const override;
};

// y = x * s, with one s for all positions of a channel of a sample. Inputs: x [N, P..., C], s [N, 1..., C] (of the same
// rank). Outputs: y, like x. In place on x.
struct MultiplyChannels final : OpDef {
  std::string_view kind() const override { return "multiply_channels"; }
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
  std::vector<InPlace> in_place() const override { return {{0, 0}}; }
  void differentiate(const Op& op, Differentiator& differentiator) const override;
};

// The gradient with respect to s: ds = the sum of dy * x over the positions. Inputs: dy, x [N, P..., C]. Outputs: ds
// [N, 1..., C].
struct MultiplyChannelsGrad final : OpDef {
  std::string_view kind() const override { return "multiply_channels_grad"; }
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
};

// y = factor * x. Inputs: x. Outputs: y, like x. In place. Its gradient is the same op applied to dy.
struct ScaleBy final : OpDef {
  float factor = 1;

  explicit ScaleBy(float f) : factor(f) {}
  std::string_view kind() const override { return "scale_by"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override { return {inputs[0]}; }
  OutputPlacements placements(const PlacementQuery& query) const override;
  std::vector<InPlace> in_place() const override { return {{0, 0}}; }
  void differentiate(const Op& op, Differentiator& differentiator) const override;
};

enum class Extreme { largest, smallest };

// y = the larger (or the smaller) of a and b, equal shapes. Inputs: a, b. Outputs: y. In place on either.
struct Extremum final : OpDef {
  Extreme which = Extreme::largest;

  explicit Extremum(Extreme e) : which(e) {}
  std::string_view kind() const override { return "extremum"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
  std::vector<InPlace> in_place() const override { return {{0, 0}, {1, 0}}; }
  void differentiate(const Op& op, Differentiator& differentiator) const override;
};

// Where y equals a, da = dy and db = 0; elsewhere, da = 0 and db = dy. If a and b are equal, y counts as a, as in
// TensorFlow. Inputs: dy, a, b. Outputs: da, db.
struct ExtremumGrad final : OpDef {
  Extreme which = Extreme::largest;

  explicit ExtremumGrad(Extreme e) : which(e) {}
  std::string_view kind() const override { return "extremum_grad"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
  std::vector<InPlace> in_place() const override { return {{0, 0}}; }
};

}  // namespace trainctl
