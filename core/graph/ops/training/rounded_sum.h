// A sum over ranks with summands that are sent as bfloat16 and added in float32. Each rank rounds its summands,
// receives the summands of all ranks for its shard (all_to_all) and adds them in the order of the ranks. Then the
// shards are gathered. This halves the bytes of an all_reduce, all ranks get bitwise equal results, and intermediate
// sums are not rounded.
#pragma once

#include "core/graph/op.h"

namespace trainctl {

// The base class of the ops before and after the communication. They work element by element on flat memory, and keep
// the placements along all axes except the axis of the sum.
struct RoundedSumOp : OpDef {
  MeshAxis axis = MeshAxis::data;
  int ranks = 1;  // number of ranks along the axis

  RoundedSumOp(MeshAxis a, int r) : axis(a), ranks(r) {}
  std::string attributes() const override;

 protected:
  // The placement rule of all these ops: along their own axis, placement `from` becomes `to`.
  OutputPlacements place(const PlacementQuery& query, const Placement& from, const Placement& to) const;
};

// Rounds summands. Inputs: x float32 [n]. Outputs: bfloat16 [ranks * k], the shards of the ranks one after the other,
// where k is n / ranks rounded up; the values after the first n are zeros.
struct RoundSummands final : RoundedSumOp {
  using RoundedSumOp::RoundedSumOp;
  std::string_view kind() const override { return "round_summands"; }
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
};

// Adds summands in float32 in the order of the ranks. Inputs: bfloat16 [ranks * k], the summands one after the other.
// Outputs: their sum [k], in float32 or rounded to bfloat16.
struct AddSummands final : RoundedSumOp {
  DType to = DType::float32;

  AddSummands(MeshAxis a, int r, DType dtype) : RoundedSumOp(a, r), to(dtype) {}
  std::string_view kind() const override { return "add_summands"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
};

// Converts the sums back to float32. Inputs: bfloat16 [ranks * k]. Outputs: the first `count` values, float32 [count].
struct WidenSums final : RoundedSumOp {
  std::int64_t count = 0;

  WidenSums(MeshAxis a, int r, std::int64_t n) : RoundedSumOp(a, r), count(n) {}
  std::string_view kind() const override { return "widen_sums"; }
  std::vector<TensorType> outputs(std::span<const TensorType>) const override { return {{{count}, DType::float32}}; }
  OutputPlacements placements(const PlacementQuery& query) const override;
};

}  // namespace trainctl
