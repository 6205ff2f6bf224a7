// The last product of a network with many classes, together with the cross-entropy of the result. The logits exist for
// a chunk of rows at a time.
#pragma once

#include <cstdint>

#include "core/graph/op.h"
#include "core/graph/ops/losses/categorical_crossentropy.h"

namespace trainctl {

// The number of rows of a chunk. The logits of a chunk take about 64 MiB, or more if that were less than 256 rows,
// because the products of few rows are slow. All chunks but the last have equal numbers of rows, multiples of 16, which
// depend on the shapes alone.
std::int64_t chunk_rows(std::int64_t rows, std::int64_t classes, DType dtype);

// Computes logits = x kernel + bias and their class sums (core/graph/ops/losses/losses.h). In training, also computes
// the gradients of `scale` times the weighted sum of losses. Inputs: x [N, P..., in]; kernel [in, K], or [K, in] if
// `transposed`; bias [K] (if `bias`); targets int32 [N, P...]; in training, weights float32 [N] or [N, P...]. Outputs:
// class sums, float32 [N, P..., class_sums]; in training dx, like x, and then, float32 and (+)=, dkernel and (if
// `bias`) dbias. The class sums of rows of weight 0 may be any values in training.
//
// A graph has the op for evaluation, and its gradient is the op for training. In training, programs run only the
// latter.
struct LinearCrossEntropy final : OpDef {
  SparseCategoricalCrossentropy rule;
  bool transposed = false;
  bool has_bias = false;
  float scale = 1;
  bool training = false;
  bool accumulate = false;  // add to dkernel and dbias instead of overwriting them

  std::string_view kind() const override { return "linear_cross_entropy"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
  double flops(std::span<const TensorType> inputs, std::span<const TensorType> outputs) const override;
  void differentiate(const Op& op, Differentiator& differentiator) const override;
  bool begins_gradient() const override { return true; }
  // The numbers of the inputs after the kernel.
  std::size_t targets() const { return has_bias ? 3 : 2; }
  std::size_t weights() const { return targets() + 1; }
};

}  // namespace trainctl
