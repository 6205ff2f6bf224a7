// Shapes, placements and gradients of learned positions.
#include "core/graph/ops/position_embedding.h"

#include "core/graph/ops/attributes.h"
#include "core/graph/ops/backward.h"
#include "core/graph/ops/fusion.h"
#include "core/graph/placement_rules.h"

namespace trainctl {

std::string PositionEmbedding::attributes() const {
  return AttributeText().flag("adds", adds).flag("starts", starts).text();
}

std::vector<TensorType> PositionEmbedding::outputs(std::span<const TensorType> inputs) const {
  const Shape &x = inputs[0].shape, &table = inputs[1].shape;
  require(x.rank() == 3 && table.rank() == 2 && table[0] >= x[1] && table[1] == x[2],
          "position_embedding: the table does not fit x [N, T, C]");
  require(inputs.size() == (starts ? 3U : 2U), "position_embedding: the inputs do not fit the attributes");
  return {inputs[0]};
}

// If the table has as many rows as x has positions, both can be split along the positions.
OutputPlacements PositionEmbedding::placements(const PlacementQuery& query) const {
  const bool all = !starts && query.input_types[0].shape[1] == query.input_types[1].shape[0];
  PlacementRule rule{{"a.c", ".c"}, {"a.c"}};
  if (all) rule = {{"apc", "pc"}, {"apc"}};
  if (starts) rule.inputs.emplace_back("a");
  return place_by(rule, query);
}

double PositionEmbedding::flops(std::span<const TensorType> inputs, std::span<const TensorType>) const {
  return adds ? static_cast<double>(inputs[0].shape.count()) : 0;
}

// Fuses with the sum that adds the positions to the vectors of tokens.
std::optional<Op> PositionEmbedding::fused_with(const Op& op, const Op& reader, std::size_t operand) const {
  const auto* add = reader.get_if<Add>();
  if (adds || add == nullptr || add->function.kind != ActivationKind::none) return {};
  Op fused = fused_op(op, std::make_shared<PositionEmbedding>(true, starts), reader);
  fused.inputs[0] = reader.inputs[1 - operand];
  return fused;
}

void PositionEmbedding::differentiate(const Op& op, Differentiator& differentiator) const {
  require(!starts, "position_embedding: with starts it has no gradient");
  const TensorId dy = differentiator.gradient_of(op.outputs[0]);
  if (differentiator.needs_gradient(op.inputs[1])) {
    const std::int64_t positions = differentiator.tensor(op.inputs[1]).type.shape[0];
    differentiator.emit_into(std::make_shared<PositionEmbeddingGrad>(positions, differentiator.accumulate()), {dy},
                             {differentiator.parameter_gradient(op.inputs[1])}, op);
  }
  if (adds && differentiator.needs_gradient(op.inputs[0])) differentiator.contribute(op.inputs[0], dy);
}

std::string PositionEmbeddingGrad::attributes() const {
  return AttributeText().value("positions", positions).flag("accumulate", accumulate).text();
}

std::vector<TensorType> PositionEmbeddingGrad::outputs(std::span<const TensorType> inputs) const {
  return {{{positions, inputs[0].shape.back()}, DType::float32}};
}

OutputPlacements PositionEmbeddingGrad::placements(const PlacementQuery& query) const {
  const bool all = query.input_types[0].shape[1] == query.output_types[0].shape[0];
  const PlacementRule rule = all ? PlacementRule{{"apc+S"}, {"pc+aS"}} : PlacementRule{{"a.c+S"}, {".c+aS"}};
  return kept_if(accumulate, place_by(rule, query), query);
}

double PositionEmbeddingGrad::flops(std::span<const TensorType> inputs, std::span<const TensorType>) const {
  return static_cast<double>(inputs[0].shape.count());
}

}  // namespace trainctl
