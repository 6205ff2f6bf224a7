// Batch normalisation by the statistics of all ranks along an axis, in steps between which the ranks exchange values:
// each rank's moments, gathered and merged; the normalisation; in the backward pass two sums for each channel, added up
// over the ranks. With one rank they compute what BatchNorm and its gradient compute.
#pragma once

#include "core/graph/ops/normalization/batch_norm.h"

namespace trainctl {

// The rows of a rank's moments: mean, sum of the squared distances from that mean, number of values.
inline constexpr int moment_rows = 3;

// A rank's moments of each channel, over all of its samples whatever they weigh. Inputs: x, the numbers of its samples
// (int64 [N]). Outputs: float32 [3, C]. Of a micro-batch that the rank lacks (no_sample, core/tensor/sample_numbers.h)
// the number of values is 0.
struct BatchMoments final : OpDef {
  std::string_view kind() const override { return "batch_moments"; }
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
  double flops(std::span<const TensorType> inputs, std::span<const TensorType> outputs) const override;
};

// Merges the moments of all ranks in their order, pairwise sums of squares as in Chan, Golub and LeVeque (1979), in
// float64. Inputs: the moments of all ranks [3 * ranks, C], those of this rank [3, C]. Outputs: mean [C], variance [C]
// (the biased one; both 0 where no rank has values), share []: the part of one of this rank's values in the mean, 1 /
// number of all values; 0 where this rank has none.
struct MergeMoments final : OpDef {
  std::string_view kind() const override { return "merge_moments"; }
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
};

// Normalises by merged statistics. Inputs: x, [gamma], [beta], mean, variance, share, [residual]. Outputs: y, [mask, as
// that of BatchNorm]. The gradient by x is the whole one, through the statistics too: nothing is differentiated that
// comes before the statistics.
struct SynchronizedBatchNorm final : OpDef {
  BatchNormAttributes a;
  MeshAxis axis = MeshAxis::data;
  int ranks = 1;  // along the axis

  SynchronizedBatchNorm(BatchNormAttributes attributes, MeshAxis over, int r) : a(attributes), axis(over), ranks(r) {}
  std::string_view kind() const override { return "synchronized_batch_norm"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
  double flops(std::span<const TensorType> inputs, std::span<const TensorType> outputs) const override;
  std::optional<Op> fused_with(const Op& op, const Op& reader, std::size_t operand) const override;
  void differentiate(const Op& op, Differentiator& differentiator) const override;
};

// The sums over a rank's values of dy f' and of dy f' (x - mean), for each channel. Inputs: those of BatchNormGrad.
// Outputs: the sums float32 [2, C], then those of BatchNormGrad but dx.
struct SynchronizedBatchNormSums final : OpDef {
  BatchNormAttributes a;
  bool accumulate = false;  // add dgamma and dbeta to what the outputs hold

  SynchronizedBatchNormSums(BatchNormAttributes attributes, bool add) : a(attributes), accumulate(add) {}
  std::string_view kind() const override { return "synchronized_batch_norm_sums"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
};

// The gradient by x. Inputs: dy (dresidual, which holds dy f', where there is a residual), x, [gamma], [beta, where
// center and masks_by_x()], mean, variance, share, the sums over all ranks. Outputs: dx.
struct SynchronizedBatchNormGrad final : OpDef {
  BatchNormAttributes a;

  explicit SynchronizedBatchNormGrad(BatchNormAttributes attributes) : a(attributes) {}
  std::string_view kind() const override { return "synchronized_batch_norm_grad"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override { return {inputs[1]}; }
  OutputPlacements placements(const PlacementQuery& query) const override;
};

}  // namespace trainctl
