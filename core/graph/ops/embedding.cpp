// Shapes, placements and gradients of embeddings.
#include "core/graph/ops/embedding.h"

#include "core/graph/ops/attributes.h"
#include "core/graph/ops/backward.h"
#include "core/graph/placement_rules.h"

namespace trainctl {

std::string Embedding::attributes() const { return AttributeText().value("to", name_of(to)).text(); }

std::vector<TensorType> Embedding::outputs(std::span<const TensorType> inputs) const {
  require(inputs[0].dtype == DType::int32 && inputs[1].shape.rank() == 2,
          "embedding: the inputs are not int32 numbers and a table");
  return {{inputs[0].shape.with_appended(inputs[1].shape[1]), to}};
}

void Embedding::differentiate(const Op& op, Differentiator& differentiator) const {
  if (!differentiator.needs_gradient(op.inputs[1])) return;
  const std::int64_t rows = differentiator.tensor(op.inputs[1]).type.shape[0];
  differentiator.emit_into(std::make_shared<EmbeddingGrad>(rows, differentiator.accumulate()),
                           {op.inputs[0], differentiator.gradient_of(op.outputs[0])},
                           {differentiator.parameter_gradient(op.inputs[1])}, op);
}

std::string EmbeddingGrad::attributes() const {
  return AttributeText().value("rows", rows).flag("accumulate", accumulate).text();
}

std::vector<TensorType> EmbeddingGrad::outputs(std::span<const TensorType> inputs) const {
  return {{{rows, inputs[1].shape.back()}, DType::float32}};
}

double EmbeddingGrad::flops(std::span<const TensorType> inputs, std::span<const TensorType>) const {
  return static_cast<double>(inputs[1].shape.count());
}

OutputPlacements Embedding::placements(const PlacementQuery& query) const {
  const std::string numbers = every_dimension(query.input_types[0]);
  return place_by({{numbers, ".o"}, {numbers + "o"}}, query);
}

OutputPlacements EmbeddingGrad::placements(const PlacementQuery& query) const {
  const std::string numbers = every_dimension(query.input_types[0]);
  return kept_if(accumulate, place_by({{numbers, numbers + "o+S"}, {".o+" + numbers + "S"}}, query), query);
}

}  // namespace trainctl
