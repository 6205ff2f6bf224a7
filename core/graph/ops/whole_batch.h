// The samples of all replicas together, for losses in which the samples of a batch depend on each other.
#pragma once

#include <cstdint>
#include <vector>

#include "core/graph/ops/collectives.h"

namespace trainctl {

// The numbers of samples of the ranks along the data axis, each at least 1, and the index of this rank.
struct SampleShares {
  std::vector<std::int64_t> counts;
  int own = 0;

  std::int64_t count() const { return counts[static_cast<std::size_t>(own)]; }  // of this rank
  std::int64_t first_of(int rank) const;                                        // of a rank's samples among all
  std::int64_t total() const { return first_of(static_cast<int>(std::ssize(counts))); }
  std::int64_t largest() const;
};

// y = the samples x of all ranks along the data axis, in the order of the ranks. All ranks run the same ops on y, so
// that its gradient is equal on all ranks, and the gradient of x is take_samples. Inputs: x [n, ...]. Outputs: y [N,
// ...].
struct GatherSamples final : Collective {
  SampleShares shares;

  explicit GatherSamples(SampleShares s) : Collective(MeshAxis::data), shares(std::move(s)) {}
  std::string_view kind() const override { return "gather_samples"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
  // Space for the samples of all ranks, the same number for each.
  std::int64_t workspace_bytes(std::span<const TensorType> inputs) const override;
  void differentiate(const Op& op, Differentiator& differentiator) const override;
};

// y = this rank's samples of x. Inputs: x [N, ...], equal on all ranks along the data axis. Outputs: y [n, ...]. Its
// gradient is gather_samples.
struct TakeSamples final : OpDef {
  SampleShares shares;

  explicit TakeSamples(SampleShares s) : shares(std::move(s)) {}
  std::string_view kind() const override { return "take_samples"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
  double flops(std::span<const TensorType>, std::span<const TensorType>) const override { return 0; }
  void differentiate(const Op& op, Differentiator& differentiator) const override;
};

}  // namespace trainctl
