// Batch normalisation over all dimensions except the last, optionally fused with a residual and a ReLU:
// y = f(gamma * (x - mean) / sqrt(variance + epsilon) + beta [+ residual]).
// x, y and the residual share one dtype; gamma, beta and statistics are float32 [C]; variance is the biased variance.
#pragma once

#include "core/graph/ops/elementwise/activations.h"

namespace trainctl {

// The tensor that the backward pass reads ReLU's mask (y > 0) from.
enum class ReluMask { none, x, bits, y };

struct BatchNormAttributes {
  float epsilon = 1e-3f;
  bool scale = true;      // whether the op has gamma (and its gradient dgamma)
  bool center = true;     // whether the op has beta (and its gradient dbeta)
  bool residual = false;  // whether the last input is added before the activation; set by the fusion pass
  bool relu = false;      // whether a ReLU is the last operation; set by the fusion pass
  // Whether the statistics are those of the positions that a padding mask (core/graph/ops/masks.h) shows. All positions
  // are normalised by them.
  bool masked = false;

  // With a residual, the mask cannot be recomputed from x. If the number of channels is a multiple of 8, the forward
  // pass stores the mask as one bit for each element; otherwise the backward pass reads y.
  bool masks_by_x() const { return relu && !residual; }
  bool masks_by_bits(std::int64_t channels) const { return relu && residual && channels % 8 == 0; }
  bool masks_by_y(std::int64_t channels) const { return relu && residual && channels % 8 != 0; }

  bool operator==(const BatchNormAttributes&) const = default;
};

// Normalises by the statistics of this batch. Inputs: x, [gamma], [beta], [padding mask if `masked`], [residual].
// Outputs: y, mean [C], variance [C], if `masked` the number of positions that the padding mask shows (float32 []), and
// if masks_by_bits(C) the mask: uint8, like x with C / 8 instead of C; bit k of byte i is (y > 0) of element 8 i + k.
// If the padding mask shows no position, mean and variance are 0.
struct BatchNorm final : OpDef {
  BatchNormAttributes a;
  // Whether to use the statistics of all replicas. If there are several, synchronized ops replace this op
  // (parallel/strategies/synchronized.cpp).
  bool synchronized = false;

  explicit BatchNorm(BatchNormAttributes attributes) : a(attributes) {}
  std::string_view kind() const override { return "batch_norm"; }
  double reads(std::size_t input, std::span<const TensorType>) const override { return input == 0 ? 2 : 1; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
  double flops(std::span<const TensorType> inputs, std::span<const TensorType> outputs) const override;
  std::optional<Op> fused_with(const Op& op, const Op& reader, std::size_t operand) const override;
  void differentiate(const Op& op, Differentiator& differentiator) const override;
};

// The type of the mask of x.
TensorType batch_norm_mask(const TensorType& x);
// The type of the padding mask of x [N, P..., C].
TensorType padding_mask_of(const TensorType& x);

// Inputs: dy, x, [mask if masks_by_bits(C), or y if masks_by_y(C)], [gamma], [beta if `center` and masks_by_x()], mean,
// variance, and if `masked` the padding mask and the number of positions that it shows. Outputs: dx, [dgamma], [dbeta]
// (float32 [C], sums over samples), [dresidual if `residual`; like dx].
//
// The sums are over all positions. With a padding mask, their means over the positions that it shows are the gradient
// through the statistics, which only these positions have.
//
// A mask that is recomputed from x equals the mask of the rounded y of the forward pass bit for bit: both passes
// compute the same function of x, statistics, gamma and beta in float32. A value rounds to a number above zero exactly
// if it exceeds half of the smallest positive number of the dtype (least_unmasked()). The half itself rounds to even,
// which is zero. Where a processor's instruction makes zero of denormal numbers, the mask does, too.
struct BatchNormGrad final : OpDef {
  BatchNormAttributes a;
  bool accumulate = false;  // add to dgamma and dbeta instead of overwriting them

  BatchNormGrad(BatchNormAttributes attributes, bool add) : a(attributes), accumulate(add) {}
  std::string_view kind() const override { return "batch_norm_grad"; }
  double reads(std::size_t input, std::span<const TensorType>) const override { return input < 2 ? 2 : 1; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
};

// The largest float32 value that rounds to zero in the dtype: all larger values round to positive numbers.
constexpr float least_unmasked(DType dtype) {
  return dtype == DType::bfloat16 ? 0x1p-134f : dtype == DType::float16 ? 0x1p-25f : 0.0f;
}

// Normalises by given statistics (evaluation, frozen layers). Inputs: x, [gamma], [beta], moving_mean, moving_variance,
// [residual]. Outputs: y. In place on x.
struct BatchNormInference final : OpDef {
  BatchNormAttributes a;

  explicit BatchNormInference(BatchNormAttributes attributes) : a(attributes) {}
  std::string_view kind() const override { return "batch_norm_inference"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
  std::vector<InPlace> in_place() const override { return {{0, 0}}; }
  // Only x and the residual have gradients: gamma and beta are frozen if the statistics are frozen.
  std::optional<Op> fused_with(const Op& op, const Op& reader, std::size_t operand) const override;
  void differentiate(const Op& op, Differentiator& differentiator) const override;
};

// The gradient of BatchNormInference with respect to x, before residual and activation: dx = dy * gamma / sqrt(variance
// + epsilon). Inputs: dy, [gamma], moving_variance. Outputs: dx. In place on dy.
struct BatchNormInferenceGrad final : OpDef {
  float epsilon;
  bool scale;  // whether the op has the input gamma

  BatchNormInferenceGrad(float e, bool with_gamma) : epsilon(e), scale(with_gamma) {}
  std::string_view kind() const override { return "batch_norm_inference_grad"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
  std::vector<InPlace> in_place() const override { return {{0, 0}}; }
};

}  // namespace trainctl
