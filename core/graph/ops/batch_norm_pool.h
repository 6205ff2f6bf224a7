// Batch normalisation, ReLU and max pooling as one op, as networks begin with them: the normalised images, the largest
// tensors of such a network, need not be written.
#pragma once

#include "core/graph/ops/batch_norm.h"
#include "core/graph/ops/pool2d.h"

namespace trainctl {

// Inputs: x [N, H, W, C], [gamma], [beta]. Outputs: y [N, H', W', C], mean [C], variance [C], the winners (uint8, like
// y): those of BatchNorm, with ReLU and without a residual, and Pool2d behind it, bit for bit.
struct BatchNormPool final : OpDef {
  BatchNormAttributes a;
  Window window;

  BatchNormPool(const BatchNormAttributes& attributes, const Window& w) : a(attributes), window(w) {}
  std::string_view kind() const override { return "batch_norm_pool"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
  double flops(std::span<const TensorType> inputs, std::span<const TensorType> outputs) const override;
  void differentiate(const Op& op, Differentiator& differentiator) const override;
  std::vector<OpPart> parts() const override;
};

// Inputs: dy [N, H', W', C], the winners, x [N, H, W, C], [gamma], [beta], mean, variance. Outputs: dx, [dgamma],
// [dbeta] (float32 [C], sums over samples): those of Pool2dGrad and BatchNormGrad behind it, apart from the order in
// which sums are added.
struct BatchNormPoolGrad final : OpDef {
  BatchNormAttributes a;
  Window window;
  Shape input;              // [N, H, W, C]
  bool accumulate = false;  // dgamma and dbeta add to what is there

  BatchNormPoolGrad(const BatchNormAttributes& attributes, const Window& w, Shape x, bool add)
      : a(attributes), window(w), input(std::move(x)), accumulate(add) {}
  std::string_view kind() const override { return "batch_norm_pool_grad"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
  std::vector<OpPart> parts() const override;
};

}  // namespace trainctl
