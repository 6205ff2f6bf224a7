// Shapes, placements and gradients of embeddings.
#include "core/graph/ops/embedding.h"

#include <algorithm>

#include "core/graph/ops/attributes.h"
#include "core/graph/ops/backward.h"
#include "core/graph/placement_rules.h"

namespace trainctl {
namespace {

// The largest fraction of a table's rows that a look-up of each of the numbers reads.
double fraction_read(const TensorType& numbers, std::int64_t rows) {
  return std::min(1.0, static_cast<double>(numbers.shape.count()) / static_cast<double>(rows));
}

}  // namespace

std::string Embedding::attributes() const {
  AttributeText text;
  text.value("to", name_of(to));
  if (range) text.word(to_string(*range));
  return text.text();
}

std::vector<TensorType> Embedding::outputs(std::span<const TensorType> inputs) const {
  require(inputs[0].dtype == DType::int32 && inputs[1].shape.rank() == 2,
          "embedding: the inputs are not int32 numbers and a table");
  return {{inputs[0].shape.with_appended(inputs[1].shape[1]), to}};
}

double Embedding::reads(std::size_t input, std::span<const TensorType> inputs) const {
  return input == 1 ? fraction_read(inputs[0], inputs[1].shape[0]) : 1;
}

void Embedding::differentiate(const Op& op, Differentiator& differentiator) const {
  if (!differentiator.needs_gradient(op.inputs[1])) return;
  const std::int64_t rows = differentiator.tensor(op.inputs[1]).type.shape[0];
  differentiator.emit_into(std::make_shared<EmbeddingGrad>(rows, differentiator.accumulate(), range),
                           {op.inputs[0], differentiator.gradient_of(op.outputs[0])},
                           {differentiator.parameter_gradient(op.inputs[1])}, op);
}

std::string EmbeddingGrad::attributes() const {
  AttributeText text;
  text.value("rows", rows).flag("accumulate", accumulate);
  if (range) text.word(to_string(*range));
  return text.text();
}

std::vector<TensorType> EmbeddingGrad::outputs(std::span<const TensorType> inputs) const {
  return {{{rows, inputs[1].shape.back()}, DType::float32}};
}

double EmbeddingGrad::flops(std::span<const TensorType> inputs, std::span<const TensorType>) const {
  return static_cast<double>(inputs[1].shape.count());
}

// Without `accumulate`, the whole table is set to 0 first. Rows with gradients, at most one for each
// number, are read and written.
double EmbeddingGrad::writes(std::span<const TensorType> inputs) const {
  return (accumulate ? 0 : 1) + 2 * fraction_read(inputs[0], rows);
}

// Only the ranks of the tensor axis hold ranges of the rows; their look-ups are summands.
OutputPlacements Embedding::placements(const PlacementQuery& query) const {
  const std::string numbers = every_dimension(query.input_types[0]);
  if (range && query.axis == MeshAxis::tensor) return place_by({{numbers, "r."}, {numbers + ".+r"}}, query);
  return place_by({{numbers, ".o"}, {numbers + "o"}}, query);
}

std::shared_ptr<const OpDef> Embedding::on_shard(std::span<const TensorType> inputs,
                                                 std::span<const std::optional<int>> split,
                                                 const ShardPosition& ranks) const {
  if (split[1] != 0) return nullptr;
  const std::int64_t rows = inputs[1].shape[0];
  return std::make_shared<Embedding>(to, ColumnRange{ranks.first_of(rows), rows});
}

// All ranks of the tensor axis have the same numbers and gradients; each computes the rows of its range.
OutputPlacements EmbeddingGrad::placements(const PlacementQuery& query) const {
  const std::string numbers = every_dimension(query.input_types[0]);
  if (range && query.axis == MeshAxis::tensor) {
    OutputPlacements result =
        place_by({{none_split(query.input_types[0]), none_split(query.input_types[1])}, {".."}}, query);
    if (result.problem.empty()) result.outputs = {split_along(0)};
    return kept_if(accumulate, std::move(result), query);
  }
  return kept_if(accumulate, place_by({{numbers, numbers + "o+S"}, {".o+" + numbers + "S"}}, query), query);
}

}  // namespace trainctl
