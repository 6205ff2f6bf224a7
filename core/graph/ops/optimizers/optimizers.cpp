// Shapes and placements of the optimizer op.
#include "core/graph/ops/optimizers/optimizers.h"

#include <algorithm>

#include "core/graph/ops/attributes.h"
#include "core/graph/placement_rules.h"

namespace trainctl {

std::vector<std::string> state_names(const OptimizerRule& rule) {
  return std::visit(
      [](const auto& r) {
        std::vector<std::string> names;
        for (std::size_t k = 0; k < r.state_names.size(); ++k) {
          if (r.kept() >> k & 1u) names.emplace_back(r.state_names[k]);
        }
        return names;
      },
      rule);
}

bool is_factored(const OptimizerRule& rule) {
  return std::visit([]<class Rule>(const Rule&) { return FactoredRule<Rule>; }, rule);
}

bool is_orthogonal(const OptimizerRule& rule) {
  return std::visit([]<class Rule>(const Rule&) { return OrthogonalRule<Rule>; }, rule);
}

Factors::Factors(const Shape& parameter) : matrices(1), rows(1), columns(parameter.count()), vector(true) {
  if (parameter.rank() < 2) return;
  vector = false;
  columns = parameter.back();
  rows = parameter[parameter.rank() - 2];
  matrices = parameter.count() / (rows * columns);
}

Shape factors_shape(const Shape& parameter) {
  const Factors factors(parameter);
  if (factors.vector) return parameter;
  std::vector<std::int64_t> sizes(parameter.sizes().begin(), parameter.sizes().end() - 2);
  sizes.push_back(factors.of_matrix());
  return Shape(std::move(sizes));
}

std::string OptimizerUpdate::attributes() const {
  AttributeText text;
  std::visit(
      [&]<class Rule>(const Rule& r) {
        text.word(Rule::name);
        const Rule defaults;
        Rule::options([&](const char* name, auto member, const char*, const Range&) {
          if (r.*member != defaults.*member) text.value(name, r.*member);
        });
      },
      rule);
  if (clip_norm != 0) text.value("clip_norm", clip_norm);
  if (weight_decay != 0) text.value("weight_decay", weight_decay);
  for (const UpdateRange& range : ranges) {
    text.word(format("[{},{}){}", range.offset, range.offset + range.count, range.decay ? "" : " no decay"));
    if (range.matrix.rank() > 0) text.word("matrix " + to_string(range.matrix));
  }
  if (!copies.empty()) text.value("copies", copies.size());
  return text.text();
}

std::vector<TensorType> OptimizerUpdate::outputs(std::span<const TensorType>) const {
  std::int64_t end = 0, end_of_factors = 0;
  for (const UpdateRange& range : ranges) {
    end = std::max(end, range.offset + range.count);
    end_of_factors = std::max(end_of_factors, range.factors.offset + range.factors.count());
  }
  std::vector<TensorType> types(1 + state_names(rule).size(), {{end}, DType::float32});
  if (is_factored(rule)) types[1].shape = {end_of_factors};
  for (const UpdateCopy& copy : copies) types.push_back({copy.shape, copy.layout.dtype});
  return types;
}

// The products of the Newton-Schulz steps exceed all other work of a rule that orthogonalizes matrices.
double OptimizerUpdate::flops(std::span<const TensorType> inputs, std::span<const TensorType> outputs) const {
  double sum = OpDef::flops(inputs, outputs);
  const auto* muon = std::get_if<Muon>(&rule);
  if (muon == nullptr) return sum;
  for (const UpdateRange& range : ranges) {
    if (range.matrix.rank() != 2) continue;
    const auto rows = static_cast<double>(range.matrix[0]), columns = static_cast<double>(range.matrix[1]);
    const double small = std::min(rows, columns), large = std::max(rows, columns);
    sum += muon->ns_steps * 2 * small * small * (2 * large + small);
  }
  return sum;
}

OutputPlacements OptimizerUpdate::placements(const PlacementQuery& query) const {
  // A rule that computes norms of parameters needs whole parameters.
  const bool by_parameter = std::visit([](const auto& r) { return r.by_parameter; }, rule);
  const TensorType& type = query.input_types[0];
  const std::string region = by_parameter ? none_split(type) : every_dimension(type);
  const std::size_t regions = 1 + state_names(rule).size();
  PlacementRule placement{{region, "", "", "", ".", ""}, std::vector<std::string>(regions, region)};
  if (!copies.empty()) placement.inputs[0] = none_split(type);  // copies are of whole parameters
  placement.outputs.resize(regions + copies.size());
  return kept(place_by(placement, query), query, 0, regions);
}

}  // namespace trainctl
