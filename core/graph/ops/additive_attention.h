// Attention whose scores are sums of hyperbolic tangents (Bahdanau et al., 2015), and its gradient. No tensor and no
// workspace of size positions^2 exists.
#pragma once

#include "core/graph/ops/attention.h"

namespace trainctl {

// y[n, t] = sum over s of p[t, s] v[n, s], p = softmax over s of the sum over e of
// weights[e] tanh(q[n, t, e] + k[n, s, e]), over the keys that the query sees. A query that sees no key has y = 0 and
// log_sum_exp = 0. Inputs: q [N, T, head_size], k [N, S, head_size], v [N, S, value_size]; then, if the attributes say
// so, the mask, the samples' numbers and the step of Attention; then, if `weighted`, the weights: a float32 parameter
// of any shape with head_size values, or with one value for all e. Without it they are 1. Outputs: y [N, T,
// value_size], log_sum_exp float32 [N, T]. Of the attributes of Attention, those of heads, `scale`, `window` and
// `documents` do not apply.
struct AdditiveAttention final : OpDef {
  AttentionAttributes a;
  bool weighted = true;

  AdditiveAttention(AttentionAttributes attributes, bool w) : a(std::move(attributes)), weighted(w) {}
  std::string_view kind() const override { return "additive_attention"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
  double flops(std::span<const TensorType> inputs, std::span<const TensorType> outputs) const override;
  void differentiate(const Op& op, Differentiator& differentiator) const override;
};

// The gradients, computed from the probabilities, which it computes again. Inputs: dy, log_sum_exp, then the inputs of
// AdditiveAttention. Outputs: dq, dk and dv, each like its input; if `weighted`, dweights (+)= the sum over all
// samples and positions, float32 like the weights.
struct AdditiveAttentionGrad final : OpDef {
  AttentionAttributes a;
  bool weighted = true;
  bool accumulate = false;  // add to dweights instead of overwriting it

  AdditiveAttentionGrad(AttentionAttributes attributes, bool w, bool add)
      : a(std::move(attributes)), weighted(w), accumulate(add) {}
  std::string_view kind() const override { return "additive_attention_grad"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
  double flops(std::span<const TensorType> inputs, std::span<const TensorType> outputs) const override;
};

// The weights of an additive attention, for the kernels of all backends.
struct ScoreWeights {
  const float* values = nullptr;  // null: all weights are 1
  bool one = false;               // one value for all e

  constexpr float of(std::int64_t e) const { return values == nullptr ? 1.0f : values[one ? 0 : e]; }
};

}  // namespace trainctl
