// Shapes and placements of the ops for sums over ranks in bfloat16.
#include "core/graph/ops/training/rounded_sum.h"

#include "core/base/checked.h"
#include "core/graph/ops/attributes.h"

namespace trainctl {

std::string RoundedSumOp::attributes() const { return format("{} ranks={}", name_of(axis), ranks); }

OutputPlacements RoundedSumOp::place(const PlacementQuery& query, const Placement& from, const Placement& to) const {
  if (query.axis != axis) return {{query.inputs[0]}, {}};
  if (query.inputs[0] == from) return {{to}, {}};
  return {{}, format("{} is {} and not {}", query.input_name(0), to_string(query.inputs[0]), to_string(from))};
}

std::vector<TensorType> RoundSummands::outputs(std::span<const TensorType> inputs) const {
  return {{{round_up(inputs[0].shape.count(), ranks)}, DType::bfloat16}};
}

OutputPlacements RoundSummands::placements(const PlacementQuery& query) const { return place(query, partial, partial); }

std::string AddSummands::attributes() const { return format("{} to={}", RoundedSumOp::attributes(), name_of(to)); }

std::vector<TensorType> AddSummands::outputs(std::span<const TensorType> inputs) const {
  require(inputs[0].shape.count() % ranks == 0, "add_summands: the summands of the ranks differ in length");
  return {{{inputs[0].shape.count() / ranks}, to}};
}

OutputPlacements AddSummands::placements(const PlacementQuery& query) const {
  return place(query, varying, split_along(0));
}

OutputPlacements WidenSums::placements(const PlacementQuery& query) const {
  return place(query, replicated, replicated);
}

}  // namespace trainctl
