// Batch normalisation, ReLU and max pooling as one op. Many networks begin with these three ops. The fused op does not
// write the normalised images, which are the largest tensors of such networks.
#pragma once

#include "core/graph/ops/images/pool2d.h"
#include "core/graph/ops/normalization/batch_norm.h"

namespace trainctl {

// Inputs: x [N, H, W, C], [gamma], [beta]. Outputs: y [N, H', W', C], mean [C], variance [C], the winners (uint8, like
// y). The outputs are bitwise equal to the outputs of BatchNorm, with ReLU and without a residual, followed by Pool2d.
struct BatchNormPool final : OpDef {
  BatchNormAttributes a;
  Window window;

  BatchNormPool(const BatchNormAttributes& attributes, const Window& w) : a(attributes), window(w) {}
  std::string_view kind() const override { return "batch_norm_pool"; }
  double reads(std::size_t input, std::span<const TensorType>) const override { return input == 0 ? 2 : 1; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
  double flops(std::span<const TensorType> inputs, std::span<const TensorType> outputs) const override;
  void differentiate(const Op& op, Differentiator& differentiator) const override;
  std::vector<SubOp> decomposition() const override;
};

// Inputs: dy [N, H', W', C], the winners, x [N, H, W, C], [gamma], [beta], mean, variance. Outputs: dx, [dgamma],
// [dbeta] (float32 [C], sums over samples). The outputs equal the outputs of Pool2dGrad followed by BatchNormGrad,
// except for the order of additions in sums.
struct BatchNormPoolGrad final : OpDef {
  BatchNormAttributes a;
  Window window;
  Shape input;              // [N, H, W, C]
  bool accumulate = false;  // add to dgamma and dbeta instead of overwriting them

  BatchNormPoolGrad(const BatchNormAttributes& attributes, const Window& w, Shape x, bool add)
      : a(attributes), window(w), input(std::move(x)), accumulate(add) {}
  std::string_view kind() const override { return "batch_norm_pool_grad"; }
  double reads(std::size_t input, std::span<const TensorType>) const override { return input < 3 ? 2 : 1; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
  std::vector<SubOp> decomposition() const override;
};

}  // namespace trainctl
