// A sum over ranks whose summands travel as bfloat16 and are added in float32: summands are rounded, each rank receives
// all summands of its part (all_to_all), adds them in the order of the ranks, and parts are gathered again. The bytes
// of an all_reduce halve, all ranks get the same bits, and nothing is rounded from rank to rank on the way.
#pragma once

#include "core/graph/op.h"

namespace trainctl {

// The base of the ops in between. They work on flat memory, element by element: on axes other than that of the sum
// values lie as they lay before.
struct RoundedSumOp : OpDef {
  MeshAxis axis = MeshAxis::data;
  int ranks = 1;  // number of ranks along the axis

  RoundedSumOp(MeshAxis a, int r) : axis(a), ranks(r) {}
  std::string attributes() const override;

 protected:
  // The rule that all follow: `from` becomes `to` on the own axis.
  OutputPlacements place(const PlacementQuery& query, const Placement& from, const Placement& to) const;
};

// Rounds summands. Inputs: x float32 [n]. Outputs: bfloat16 [ranks * k], the parts of the ranks one behind the other,
// where k is n / ranks rounded up; zeros behind the n values.
struct RoundSummands final : RoundedSumOp {
  using RoundedSumOp::RoundedSumOp;
  std::string_view kind() const override { return "round_summands"; }
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
};

// Adds summands in float32, from that of rank 0 to that of the last. Inputs: bfloat16 [ranks * k], the summands one
// behind the other. Outputs: their sum [k], in float32 or rounded to bfloat16.
struct AddSummands final : RoundedSumOp {
  DType to = DType::float32;

  AddSummands(MeshAxis a, int r, DType dtype) : RoundedSumOp(a, r), to(dtype) {}
  std::string_view kind() const override { return "add_summands"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
};

// The sums in float32 again. Inputs: bfloat16 [ranks * k]. Outputs: the first `count` values, float32 [count].
struct WidenSums final : RoundedSumOp {
  std::int64_t count = 0;

  WidenSums(MeshAxis a, int r, std::int64_t n) : RoundedSumOp(a, r), count(n) {}
  std::string_view kind() const override { return "widen_sums"; }
  std::vector<TensorType> outputs(std::span<const TensorType>) const override { return {{{count}, DType::float32}}; }
  OutputPlacements placements(const PlacementQuery& query) const override;
};

}  // namespace trainctl
