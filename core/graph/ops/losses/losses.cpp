// Shapes and placements of the loss ops.
#include "core/graph/ops/losses/losses.h"

#include <algorithm>

#include "core/graph/ops/attributes.h"
#include "core/graph/placement_rules.h"

namespace trainctl {
namespace {

LossOver over_of(const LossRule& rule) {
  return std::visit([](const auto& r) { return r.over; }, rule);
}

// The name of the class dimension in placement rules, if an op works on a rank's range of the classes: only the tensor
// axis may split it.
const char* classes_name(const PlacementQuery& query) { return query.axis == MeshAxis::tensor ? "c" : "."; }

}  // namespace

std::string_view name_of(const LossRule& rule) {
  return std::visit([](const auto& r) -> std::string_view { return r.name; }, rule);
}

LossTargets targets_of(const LossRule& rule) {
  return std::visit([](const auto& r) { return r.targets; }, rule);
}

LossLink link_of(const LossRule& rule) {
  return std::visit([](const auto& r) { return r.link; }, rule);
}

bool is_over_classes(const LossRule& rule) { return over_of(rule) == LossOver::classes; }

bool is_over_sequences(const LossRule& rule) { return over_of(rule) == LossOver::sequences; }

std::int64_t rows_per_weight(const Shape& predictions, const Shape& weights) {
  return predictions.rows() / std::max<std::int64_t>(weights.count(), 1);
}

std::string ClassSums::attributes() const {
  AttributeText text;
  std::visit([&](const auto& r) { text.rule(r); }, rule);
  return text.word(to_string(columns)).text();
}

std::vector<TensorType> ClassSums::outputs(std::span<const TensorType> inputs) const {
  return {{inputs[0].shape.with_back(class_sums), DType::float32}};
}

OutputPlacements ClassSums::placements(const PlacementQuery& query) const {
  const std::string row = rows(query.input_types[0]), last = classes_name(query);
  const bool numbers = query.input_types[1].shape.rank() < query.input_types[0].shape.rank();
  return place_by({{row + last, numbers ? row : row + "."}, {row + last}}, query);
}

double ClassSums::flops(std::span<const TensorType> inputs, std::span<const TensorType>) const {
  return 3.0 * static_cast<double>(inputs[0].shape.count());
}

std::string Loss::attributes() const {
  AttributeText text;
  std::visit([&](const auto& r) { text.rule(r); }, rule);
  if (scale != 1) text.value("scale", scale);
  if (columns) text.word(to_string(*columns));
  return text.flag("of_sums", of_sums)
      .flag("masked", masked)
      .flag("uncounted", !counts)
      .flag("training", training)
      .flag("accumulate", accumulate)
      .text();
}

std::vector<TensorType> Loss::outputs(std::span<const TensorType> inputs) const {
  const Shape &predictions = inputs[0].shape, &weights = inputs[2].shape;
  require(predictions.rank() >= 2, "loss: predictions do not have the shape [N, ..., K]");
  require(weights == Shape{predictions[0]} || weights.count() == predictions.rows(),
          "loss: the weights are neither one for each sample nor one for each position");
  require(!is_over_sequences(rule) || (predictions.rank() == 3 && weights.rank() == 1),
          "loss: sequences do not have the shape [N, T, K], or have weights of their steps");
  const TensorType scalar{Shape{}, DType::float32};
  std::vector<TensorType> types(static_cast<std::size_t>(sums()), scalar);
  if (training) types.push_back(inputs[0]);
  return types;
}

OutputPlacements Loss::placements(const PlacementQuery& query) const {
  std::string row = rows(query.input_types[0]);
  if (is_over_sequences(rule) || over_of(rule) == LossOver::samples) std::fill(row.begin() + 1, row.end(), '.');
  const std::string weights = row.substr(0, static_cast<std::size_t>(query.input_types[2].shape.rank()));
  const bool numbers = query.input_types[1].shape.rank() < query.input_types[0].shape.rank();
  const std::string last = is_split() ? classes_name(query) : ".";
  PlacementRule rule{{row + last, numbers ? row : row + ".", weights}, {"+" + row}};
  if (is_split()) rule.inputs.push_back(row + ".");
  if (masked) rule.inputs.push_back(row);
  if (counts) rule.outputs.push_back("+" + weights);
  if (training) rule.outputs.push_back(row + last);
  OutputPlacements result = place_by(rule, query);
  return accumulate ? kept(std::move(result), query, 0, static_cast<std::size_t>(sums())) : result;
}

}  // namespace trainctl
