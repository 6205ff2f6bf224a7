// Attention by scaled dot products (Vaswani et al., 2017), with heads side by side in the last dimension, and its
// gradient. No tensor and no workspace of size positions^2 exists (Dao et al., 2022: FlashAttention).
#pragma once

#include <cstdint>
#include <optional>

#include "core/graph/ops/reshaping/columns.h"

namespace trainctl {

// The dropout of attention's probabilities. The mask of (head h, query t, key s) is that of element
// (h * queries + t) * keys + s of the sample, by the rule of Dropout (core/graph/ops/elementwise/dropout.h).
struct AttentionDropout {
  float rate = 0;
  std::uint64_t seed = 0;
  std::uint32_t layer = 0;           // name_hash of the layer's path
  std::optional<ColumnRange> heads;  // the heads of a shard; empty: all heads
};

// The number of heads follows from the shapes: H = columns of q / head_size. Key and value have K heads, K divides H,
// and query head h reads key head h / (H / K) (Ainslie et al., 2023: grouped-query attention).
struct AttentionAttributes {
  std::int64_t head_size = 1;   // columns of a head in q and k
  std::int64_t value_size = 1;  // columns of a head in v and y
  // If not 0, q, k and v are one input with the columns [K][packed + 2][head_size]: for each key head its H / K =
  // `packed` query heads, then the key, then the value.
  std::int64_t packed = 0;
  float scale = 1;          // factor of the dot products
  bool causal = false;      // query t sees keys s <= t only
  std::int64_t window = 0;  // if not 0, query t sees keys with |t - s| < window only
  bool mask = false;        // an input tells which keys may be seen
  bool documents = false;   // an input has a number for each position; queries see keys of the same number only
  bool starts = false;      // an input has for each sample the position of query 0 among the keys
  AttentionDropout dropout;
};

// The sizes of an attention op.
struct AttentionSizes {
  std::int64_t samples, queries, keys, heads, key_heads;

  // `types` are the types of q, k and v, or of the packed input.
  AttentionSizes(const AttentionAttributes& a, std::span<const TensorType> types);
  constexpr std::int64_t group() const { return heads / key_heads; }  // query heads of a key head
};

// The numbers of the inputs of an Attention op. With AttentionGrad they follow dy, y and log_sum_exp.
struct AttentionInputs {
  std::size_t mask = 0, documents = 0, starts = 0, samples = 0, step = 0;  // 0: the op has no such input
  std::size_t count = 0;

  explicit AttentionInputs(const AttentionAttributes& a);
};

// y[n, t, h] = sum over s of p[t, s] v[n, s, h], p = softmax over s of scale * q[n, t, h] . k[n, s, h], over the keys
// that the query sees. A query that sees no key has y = 0 and log_sum_exp = 0. Inputs: q [N, T, H * head_size], k
// [N, S, K * head_size], v [N, S, K * value_size], or one packed input [N, T, K * (packed + 2) * head_size]; then, if
// the attributes say so, mask uint8 [N, S] (0: nobody sees the key), documents int32 [N, T] (S = T), starts int32 [N],
// and with dropout the samples' numbers int64 [N] and the step, an int64 scalar. With starts, query t is at position
// starts[n] + t of the keys, which are a cache of earlier positions, and the op has no gradient. Outputs: y [N, T, H *
// value_size], log_sum_exp float32 [N, H, T], the logarithm of the denominator of each softmax.
struct Attention final : OpDef {
  AttentionAttributes a;

  explicit Attention(AttentionAttributes attributes) : a(std::move(attributes)) {}
  std::string_view kind() const override { return "attention"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
  std::shared_ptr<const OpDef> on_shard(std::span<const TensorType> inputs, std::span<const std::optional<int>> split,
                                        const ShardPosition& ranks) const override;
  double flops(std::span<const TensorType> inputs, std::span<const TensorType> outputs) const override;
  void differentiate(const Op& op, Differentiator& differentiator) const override;
};

// The gradients of q, k and v, computed from the probabilities, which it computes again. Inputs: dy, y, log_sum_exp,
// then the inputs of Attention. Outputs: dq, dk, dv, or the gradient of the packed input, each like its input and in
// place on it.
struct AttentionGrad final : OpDef {
  AttentionAttributes a;

  explicit AttentionGrad(AttentionAttributes attributes) : a(std::move(attributes)) {}
  std::string_view kind() const override { return "attention_grad"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
  double flops(std::span<const TensorType> inputs, std::span<const TensorType> outputs) const override;
  std::vector<InPlace> in_place() const override;
};

}  // namespace trainctl
