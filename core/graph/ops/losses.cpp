// Rules of the losses' op.
#include "core/graph/ops/losses.h"

#include <algorithm>

#include "core/graph/ops/attributes.h"
#include "core/graph/placement_rules.h"

namespace trainctl {

std::string_view name_of(const LossRule& rule) {
  return std::visit([](const auto& r) -> std::string_view { return r.name; }, rule);
}

LossTargets targets_of(const LossRule& rule) {
  return std::visit([](const auto& r) { return r.targets; }, rule);
}

LossLink link_of(const LossRule& rule) {
  return std::visit([](const auto& r) { return r.link; }, rule);
}

std::int64_t rows_per_weight(const Shape& predictions, const Shape& weights) {
  return predictions.rows() / std::max<std::int64_t>(weights.count(), 1);
}

std::string Loss::attributes() const {
  AttributeText text;
  std::visit([&](const auto& r) { text.rule(r); }, rule);
  if (scale != 1) text.value("scale", scale);
  return text.flag("uncounted", !counts).flag("training", training).flag("accumulate", accumulate).text();
}

std::vector<TensorType> Loss::outputs(std::span<const TensorType> inputs) const {
  const Shape &predictions = inputs[0].shape, &weights = inputs[2].shape;
  require(predictions.rank() >= 2, "loss: predictions have the shape [N, ..., K]");
  require(weights == Shape{predictions[0]} || weights.count() == predictions.rows(),
          "loss: a weight for each sample or for each of its positions");
  const TensorType scalar{Shape{}, DType::float32};
  std::vector<TensorType> types(static_cast<std::size_t>(sums()), scalar);
  if (training) types.push_back(inputs[0]);
  return types;
}

OutputPlacements Loss::placements(const PlacementQuery& query) const {
  const std::string row = rows(query.input_types[0]);
  const std::string weights = row.substr(0, static_cast<std::size_t>(query.input_types[2].shape.rank()));
  const bool numbers = query.input_types[1].shape.rank() < query.input_types[0].shape.rank();
  PlacementRule rule{{row + ".", numbers ? row : row + ".", weights}, {"+" + row}};
  if (counts) rule.outputs.push_back("+" + weights);
  if (training) rule.outputs.push_back(row + ".");
  OutputPlacements result = place_by(rule, query);
  return accumulate ? kept(std::move(result), query, 0, static_cast<std::size_t>(sums())) : result;
}

}  // namespace trainctl
