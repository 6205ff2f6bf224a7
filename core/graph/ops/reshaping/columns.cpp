// Shapes, placements and gradients of TakeColumns.
#include "core/graph/ops/reshaping/columns.h"

#include "core/graph/differentiator.h"
#include "core/graph/ops/attributes.h"
#include "core/graph/ops/collectives.h"
#include "core/graph/placement_rules.h"

namespace trainctl {

std::string to_string(const ColumnRange& part) { return format("[{}..] of {}", part.first, part.of); }

std::string TakeColumns::attributes() const {
  return AttributeText().word(std::string(name_of(axis))).word(format("{}/{}", shard.index, shard.count)).text();
}

std::vector<TensorType> TakeColumns::outputs(std::span<const TensorType> inputs) const {
  const Shape& x = inputs[0].shape;
  require(x.rank() > 0 && x.back() >= shard.count, "take_columns: there are fewer columns than ranks");
  return {{x.with_back(shard.size_of(x.back())), inputs[0].dtype}};
}

OutputPlacements TakeColumns::placements(const PlacementQuery& query) const {
  if (query.axis != axis) return place_rows(query, true);
  if (query.inputs[0] == replicated)
    return {{split_along(static_cast<int>(query.input_types[0].shape.rank()) - 1)}, {}};
  return {{}, format("{} is {} and not replicated", query.input_name(0), to_string(query.inputs[0]))};
}

void TakeColumns::differentiate(const Op& op, Differentiator& differentiator) const {
  const TensorId dy = differentiator.gradient_of(op.outputs[0]);
  const std::int64_t columns = differentiator.tensor(op.inputs[0]).type.shape.back();
  const auto gather = std::make_shared<AllGatherColumns>(axis, shard, columns);
  differentiator.contribute(op.inputs[0], differentiator.emit(gather, {dy}, op)[0]);
}

}  // namespace trainctl
