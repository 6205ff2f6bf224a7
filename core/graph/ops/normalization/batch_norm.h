// Batch normalisation over all dimensions but the last, with an optional residual and ReLU fused behind it:
// y = f(gamma * (x - mean) / sqrt(variance + epsilon) + beta [+ residual]).
// x, y and the residual share one dtype; gamma, beta and statistics are float32 [C]; variance is the biased one.
#pragma once

#include "core/graph/ops/elementwise/activations.h"

namespace trainctl {

// The source from which the backward pass takes ReLU's mask (y > 0).
enum class ReluMask { none, x, bits, y };

struct BatchNormAttributes {
  float epsilon = 1e-3f;
  bool scale = true;      // gamma; where false the op has no such input (and no dgamma output)
  bool center = true;     // beta; likewise
  bool residual = false;  // the last input is added before the activation; set by the fusion pass
  bool relu = false;      // set by the fusion pass

  // The sum with a residual cannot be computed again from x. Where channels fill whole bytes, the forward pass keeps a
  // bit for each element of the sum; otherwise the backward pass reads y.
  bool masks_by_x() const { return relu && !residual; }
  bool masks_by_bits(std::int64_t channels) const { return relu && residual && channels % 8 == 0; }
  bool masks_by_y(std::int64_t channels) const { return relu && residual && channels % 8 != 0; }

  bool operator==(const BatchNormAttributes&) const = default;
};

// Normalises by the statistics of this batch. Inputs: x, [gamma], [beta], [residual]. Outputs: y, mean [C], variance
// [C], [mask, where masks_by_bits(C): uint8, C / 8 for each C of x; bit k of byte i is y > 0 of element 8 i + k].
struct BatchNorm final : OpDef {
  BatchNormAttributes a;
  bool synchronized = false;  // by the statistics of all replicas, whose ops take the place of this one where there are
                              // several (parallel/strategies/synchronized.h)

  explicit BatchNorm(BatchNormAttributes attributes) : a(attributes) {}
  std::string_view kind() const override { return "batch_norm"; }
  int reads(std::size_t input) const override { return input == 0 ? 2 : 1; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
  double flops(std::span<const TensorType> inputs, std::span<const TensorType> outputs) const override;
  std::optional<Op> fused_with(const Op& op, const Op& reader, std::size_t operand) const override;
  void differentiate(const Op& op, Differentiator& differentiator) const override;
};

// The type of the mask of x.
TensorType batch_norm_mask(const TensorType& x);

// Inputs: dy, x, [mask or y, where masks_by_bits(C) or masks_by_y(C)], [gamma], [beta, where center and masks_by_x()],
// mean, variance. Outputs: dx, [dgamma], [dbeta] (float32 [C], sums over samples), [dresidual, where residual; like
// dx].
//
// A mask by x is bit for bit that of the y which the forward pass rounded and wrote: both compute the same function of
// x, statistics, gamma and beta in float32, and a value rounds to more than zero exactly where it is more than half of
// the dtype's least number above zero (least_unmasked(); the half itself rounds to even, which is zero).
struct BatchNormGrad final : OpDef {
  BatchNormAttributes a;
  bool accumulate = false;  // add dgamma and dbeta to what the outputs hold

  BatchNormGrad(BatchNormAttributes attributes, bool add) : a(attributes), accumulate(add) {}
  std::string_view kind() const override { return "batch_norm_grad"; }
  int reads(std::size_t input) const override { return input < 2 ? 2 : 1; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
};

// The largest float32 value that rounds to zero in the dtype: every larger value stays above zero.
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
  // By x and the residual: gamma and beta do not train where the statistics are given.
  std::optional<Op> fused_with(const Op& op, const Op& reader, std::size_t operand) const override;
  void differentiate(const Op& op, Differentiator& differentiator) const override;
};

// The gradient of BatchNormInference by x, before residual and activation: dx = dy * gamma / sqrt(variance + epsilon).
// Inputs: dy, [gamma], moving_variance. Outputs: dx. In place on dy.
struct BatchNormInferenceGrad final : OpDef {
  float epsilon;
  bool scale;  // gamma; where false the op has no such input

  BatchNormInferenceGrad(float e, bool with_gamma) : epsilon(e), scale(with_gamma) {}
  std::string_view kind() const override { return "batch_norm_inference_grad"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
  std::vector<InPlace> in_place() const override { return {{0, 0}}; }
};

}  // namespace trainctl
