// Shapes, placements and gradients of dropout.
#include "core/graph/ops/elementwise/dropout.h"

#include <algorithm>

#include "core/graph/differentiator.h"
#include "core/graph/ops/attributes.h"
#include "core/graph/placement_rules.h"

namespace trainctl {

std::string Dropout::attributes() const {
  AttributeText text;
  text.value("rate", rate).value("seed", seed).value("layer", layer).flag("by_channel", unit == DropoutUnit::channel);
  text.flag("by_sample", unit == DropoutUnit::sample);
  if (columns) text.word(to_string(*columns));
  if (dimension >= 0) text.value("dimension", dimension);
  return text.text();
}

std::vector<TensorType> Dropout::outputs(std::span<const TensorType> inputs) const { return {inputs[0]}; }

OutputPlacements Dropout::placements(const PlacementQuery& query) const {
  // The mask is a function of the index of a unit in the whole sample, which the op can compute only for these shards.
  const TensorType& type = query.input_types[0];
  std::string x = samples(type);
  const auto set_last = [&](char letter) { x.back() = letter; };
  if (unit == DropoutUnit::sample) x = every_dimension(type);
  if (unit == DropoutUnit::channel) x = rows(type) + ".";
  if (columns && dimension < 0) set_last('z');
  if (columns && dimension >= 0) x[static_cast<std::size_t>(dimension)] = 'z';
  return place_by({{x + "+S", "a", ""}, {x + "+S"}}, query);
}

// A shard needs its range if the numbers of its units depend on the range. Other shards must be whole samples.
std::shared_ptr<const OpDef> Dropout::on_shard(std::span<const TensorType> inputs,
                                               std::span<const std::optional<int>> split,
                                               const ShardPosition& ranks) const {
  const Shape& x = inputs[0].shape;
  if (!split[0] || *split[0] == 0 || unit == DropoutUnit::sample) return nullptr;
  const bool is_last = *split[0] == x.rank() - 1;
  if (unit == DropoutUnit::channel && !is_last) return nullptr;
  const std::int64_t size = x[*split[0]];
  return std::make_shared<Dropout>(rate, seed, layer, unit, ColumnRange{ranks.first_of(size), size},
                                   is_last ? -1 : *split[0]);
}

Dropout::Runs Dropout::runs(const Shape& x) const {
  if (unit == DropoutUnit::sample) return {1, 0, 0};
  if (unit == DropoutUnit::channel) return {x.back(), 0, columns ? columns->first : 0};
  if (!columns) return {x.count() / std::max<std::int64_t>(x[0], 1), 0, 0};
  const auto split = dimension < 0 ? static_cast<int>(x.rank()) - 1 : dimension;
  std::int64_t each = 1;  // elements of one index along the dimension
  for (int d = split + 1; d < x.rank(); ++d) each *= x[d];
  return {x[split] * each, columns->of * each, columns->first * each};
}

void Dropout::differentiate(const Op& op, Differentiator& differentiator) const {
  const TensorId dy = differentiator.gradient_of(op.outputs[0]);
  const auto dx = differentiator.emit(op.def, {dy, op.inputs[1], op.inputs[2]}, op);
  differentiator.contribute(op.inputs[0], dx[0]);
}

}  // namespace trainctl
