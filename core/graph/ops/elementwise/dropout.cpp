// Shapes, placements and gradients of dropout.
#include "core/graph/ops/elementwise/dropout.h"

#include "core/graph/differentiator.h"
#include "core/graph/ops/attributes.h"
#include "core/graph/placement_rules.h"

namespace trainctl {

std::string Dropout::attributes() const {
  AttributeText text;
  text.value("rate", rate).value("seed", seed).value("layer", layer).flag("by_channel", unit == DropoutUnit::channel);
  text.flag("by_sample", unit == DropoutUnit::sample);
  if (columns) text.word(to_string(*columns));
  return text.text();
}

std::vector<TensorType> Dropout::outputs(std::span<const TensorType> inputs) const { return {inputs[0]}; }

OutputPlacements Dropout::placements(const PlacementQuery& query) const {
  // The mask is a function of the index of an element in the whole sample, which the op can compute only for these
  // shards.
  const TensorType& type = query.input_types[0];
  const std::string x = (columns ? samples_and_channels(type) : samples(type)) + "+S";
  return place_by({{x, "a", ""}, {x}}, query);
}

// A shard of the last dimension needs its column range. Other shards must be whole samples.
std::shared_ptr<const OpDef> Dropout::on_shard(std::span<const TensorType> inputs,
                                               std::span<const std::optional<int>> split,
                                               const ShardPosition& ranks) const {
  const Shape& x = inputs[0].shape;
  if (split[0] != x.rank() - 1) return nullptr;
  const ColumnRange columns{x.back() / ranks.count * ranks.index, x.back()};
  return std::make_shared<Dropout>(rate, seed, layer, unit, columns);
}

void Dropout::differentiate(const Op& op, Differentiator& differentiator) const {
  const TensorId dy = differentiator.gradient_of(op.outputs[0]);
  const auto dx = differentiator.emit(op.def, {dy, op.inputs[1], op.inputs[2]}, op);
  differentiator.contribute(op.inputs[0], dx[0]);
}

}  // namespace trainctl
