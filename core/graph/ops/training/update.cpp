// Shapes and placements of the ops before the optimizer.
#include "core/graph/ops/training/update.h"

#include <algorithm>

#include "core/base/format.h"
#include "core/graph/ops/attributes.h"
#include "core/graph/placement_rules.h"

namespace trainctl {
namespace {

TensorType floats(Shape shape) { return {std::move(shape), DType::float32}; }

}  // namespace

std::string ZeroGradients::attributes() const { return AttributeText().value("count", count).text(); }

std::vector<TensorType> ZeroGradients::outputs(std::span<const TensorType>) const { return {floats({count})}; }

// The zeros of a replica are its summand of the partial sum.
OutputPlacements ZeroGradients::placements(const PlacementQuery& query) const {
  return {{query.axis == MeshAxis::data ? partial : replicated}, {}};
}

std::string ZeroGaps::attributes() const { return AttributeText().value("gaps", gaps.size()).text(); }

OutputPlacements ZeroGaps::placements(const PlacementQuery& query) const {
  if (query.inputs[0].kind != Placement::Kind::split) return {{query.inputs[0]}, {}};
  return {{}, format("{} is {}, but gaps refer to the whole tensor", query.input_name(0), to_string(query.inputs[0]))};
}

// The zeros have the placement of the input that they replace.
OutputPlacements ZeroInput::placements(const PlacementQuery& query) const {
  return {{query.held.empty() ? replicated : query.held[0].value_or(replicated)}, {}};
}

std::string Agree::attributes() const { return AttributeText().flag("follows", follows).text(); }

std::vector<TensorType> Agree::outputs(std::span<const TensorType>) const { return {floats({agree_flags})}; }

// Each rank sets the flags for its own shards of the tensors; the flags become equal when they are summed over the
// ranks.
OutputPlacements Agree::placements(const PlacementQuery& query) const {
  const bool alike =
      std::all_of(query.inputs.begin(), query.inputs.end(), [](const Placement& input) { return input == replicated; });
  return {{alike ? replicated : partial}, {}};
}

OutputPlacements Scale::placements(const PlacementQuery& query) const {
  const std::string x = every_dimension(query.input_types[0]) + "+S";
  return place_by({{x, ""}, {x}}, query);
}

std::string GradientNorm::attributes() const { return AttributeText().value("elements", elements).text(); }

std::vector<TensorType> GradientNorm::outputs(std::span<const TensorType>) const { return {floats({})}; }

OutputPlacements GradientNorm::placements(const PlacementQuery& query) const {
  return place_by({{none_split(query.input_types[0]), ""}, {""}}, query);
}

std::string SumOfSquares::attributes() const {
  AttributeText text;
  for (const InputRange& range : ranges) text.value("elements", range.count);
  for (MeshAxis axis : axes) text.word(std::string(name_of(axis)));
  return text.text();
}

std::vector<TensorType> SumOfSquares::outputs(std::span<const TensorType>) const { return {floats({})}; }

OutputPlacements SumOfSquares::placements(const PlacementQuery& query) const {
  if (std::find(axes.begin(), axes.end(), query.axis) != axes.end()) return {{partial}, {}};
  PlacementRule rule{{}, {""}};
  for (const TensorType& type : query.input_types) rule.inputs.push_back(none_split(type));
  return place_by(rule, query);
}

std::string ChunkSquares::attributes() const {
  AttributeText text;
  for (const ChunkRange& range : ranges) text.value("elements", range.of.count);
  for (MeshAxis axis : axes) text.word(std::string(name_of(axis)));
  return text.text();
}

std::vector<TensorType> ChunkSquares::outputs(std::span<const TensorType>) const { return {floats({chunks})}; }

OutputPlacements ChunkSquares::placements(const PlacementQuery& query) const {
  if (std::find(axes.begin(), axes.end(), query.axis) != axes.end()) return {{partial}, {}};
  PlacementRule rule{{}, {"."}};
  for (const TensorType& type : query.input_types) rule.inputs.push_back(none_split(type));
  return place_by(rule, query);
}

std::vector<TensorType> SumOfChunks::outputs(std::span<const TensorType>) const { return {floats({})}; }

OutputPlacements SumOfChunks::placements(const PlacementQuery& query) const {
  return place_by({{none_split(query.input_types[0]) + "+S"}, {"+S"}}, query);
}

OutputPlacements NormOfSquares::placements(const PlacementQuery& query) const {
  return place_by({{"", ""}, {""}}, query);
}

}  // namespace trainctl
