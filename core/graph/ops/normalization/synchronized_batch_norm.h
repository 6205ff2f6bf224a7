// Batch normalisation with the statistics of all ranks along an axis. In the forward pass, each rank computes moments;
// these are gathered and merged, and each rank normalises its samples. In the backward pass, each rank computes two
// sums for each channel, which are added over the ranks. With one rank, the ops compute the same as BatchNorm and its
// gradient.
#pragma once

#include "core/graph/ops/normalization/batch_norm.h"

namespace trainctl {

// The number of rows of a rank's moments: mean, sum of squared differences from that mean, number of values.
inline constexpr int moment_rows = 3;

// The moments of each channel over all samples of a rank, regardless of sample weights, or over the positions that a
// padding mask shows. Inputs: x, the sample numbers (int64 [N]), [padding mask if `masked`]. Outputs: float32 [3, C].
// If the rank has no samples (no_sample, core/tensor/sample_numbers.h), the number of values is 0.
struct BatchMoments final : OpDef {
  bool masked = false;

  explicit BatchMoments(bool with_mask = false) : masked(with_mask) {}
  std::string_view kind() const override { return "batch_moments"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
  double flops(std::span<const TensorType> inputs, std::span<const TensorType> outputs) const override;
};

// Merges the moments of all ranks in the order of the ranks by the pairwise formula of Chan, Golub and LeVeque (1979),
// in float64. Inputs: the moments of all ranks [3 * ranks, C], the moments of this rank [3, C]. Outputs: mean [C],
// variance [C] (biased; both are 0 if no rank has values), share []: the weight of one value of this rank in the mean,
// which is 1 / number of all values, or 0 if this rank has no values.
struct MergeMoments final : OpDef {
  std::string_view kind() const override { return "merge_moments"; }
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
};

// Normalises with merged statistics. Inputs: x, [gamma], [beta], [padding mask if `masked`; only the gradient reads
// it], mean, variance, share, [residual]. Outputs: y, [mask, as in BatchNorm]. The gradient with respect to x includes
// the dependence of the statistics on x, so that the ops before the statistics are not differentiated.
struct SynchronizedBatchNorm final : OpDef {
  BatchNormAttributes a;
  MeshAxis axis = MeshAxis::data;
  int ranks = 1;  // number of ranks along the axis

  SynchronizedBatchNorm(BatchNormAttributes attributes, MeshAxis over, int r) : a(attributes), axis(over), ranks(r) {}
  std::string_view kind() const override { return "synchronized_batch_norm"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
  double flops(std::span<const TensorType> inputs, std::span<const TensorType> outputs) const override;
  std::optional<Op> fused_with(const Op& op, const Op& reader, std::size_t operand) const override;
  void differentiate(const Op& op, Differentiator& differentiator) const override;
};

// The sums of dy f' and of dy f' (x - mean) over a rank's values, for each channel. Inputs: as for BatchNormGrad
// without a padding mask. Outputs: the sums, float32 [2, C], then the outputs of BatchNormGrad except dx.
struct SynchronizedBatchNormSums final : OpDef {
  BatchNormAttributes a;
  bool accumulate = false;  // add to dgamma and dbeta instead of overwriting them

  SynchronizedBatchNormSums(BatchNormAttributes attributes, bool add) : a(attributes), accumulate(add) {}
  std::string_view kind() const override { return "synchronized_batch_norm_sums"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
};

// The gradient with respect to x. Inputs: dy (or, with a residual, dresidual, which is dy f'), x, [gamma], [beta if
// `center` and masks_by_x()], mean, variance, share, the sums over all ranks, [padding mask if `masked`]. Outputs: dx.
struct SynchronizedBatchNormGrad final : OpDef {
  BatchNormAttributes a;

  explicit SynchronizedBatchNormGrad(BatchNormAttributes attributes) : a(attributes) {}
  std::string_view kind() const override { return "synchronized_batch_norm_grad"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override { return {inputs[1]}; }
  OutputPlacements placements(const PlacementQuery& query) const override;
};

}  // namespace trainctl
