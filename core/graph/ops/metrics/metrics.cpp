// Shapes and placements of the metric op.
#include "core/graph/ops/metrics/metrics.h"

#include <algorithm>

#include "core/graph/ops/attributes.h"
#include "core/graph/placement_rules.h"

namespace trainctl {

std::string_view name_of(const MetricRule& rule) {
  return std::visit([](const auto& r) -> std::string_view { return r.name; }, rule);
}

int sums_of(const MetricRule& rule) {
  return std::visit([](const auto& r) { return r.sums(); }, rule);
}

int columns_of(const MetricRule& rule) {
  return std::visit(
      []<class Rule>(const Rule& r) {
        if constexpr (Rule::over == MetricOver::cells) return r.columns();
        return 0;
      },
      rule);
}

double value_of(const MetricRule& rule, std::span<const double> sums, double count) {
  return std::visit(
      [&]<class Rule>(const Rule& r) {
        if constexpr (Rule::over == MetricOver::cells)
          return 0.0;
        else
          return r.value(sums, count);
      },
      rule);
}

bool is_over_sequences(const MetricRule& rule) {
  return std::visit([](const auto& r) { return r.over == MetricOver::sequences; }, rule);
}

std::string_view wants_of(const MetricRule& rule) {
  return std::visit(
      []<class Rule>(const Rule&) -> std::string_view {
        if constexpr (requires { Rule::wants; }) return Rule::wants;
        return "";
      },
      rule);
}

std::string zero_division_of(const MetricRule& rule, std::span<const double> sums) {
  return std::visit(
      [&]<class Rule>(const Rule& r) -> std::string {
        if constexpr (requires { r.zero_division(sums); }) return r.zero_division(sums);
        return "";
      },
      rule);
}

std::string Metric::attributes() const {
  AttributeText text;
  std::visit(
      [&](const auto& r) {
        text.rule(r);
        r.adapted([&](const char* name, bool set) { text.flag(name, set); });
      },
      rule);
  return text.flag("of_sums", of_sums).flag("masked", masked).flag("accumulate", accumulate).text();
}

std::vector<TensorType> Metric::outputs(std::span<const TensorType>) const {
  const int sums = sums_of(rule);
  return {{sums == 1 ? Shape{} : Shape{sums}, DType::float32}};
}

OutputPlacements Metric::placements(const PlacementQuery& query) const {
  std::string row = rows(query.input_types[0]);
  if (is_over_sequences(rule)) std::fill(row.begin() + 1, row.end(), '.');
  const std::string weights = row.substr(0, static_cast<std::size_t>(query.input_types[2].shape.rank()));
  const bool numbers = query.input_types[1].shape.rank() < query.input_types[0].shape.rank();
  PlacementRule placement{{row + ".", numbers ? row : row + ".", weights}, {"+" + row}};
  if (masked) placement.inputs.push_back(row);
  return kept_if(accumulate, place_by(placement, query), query);
}

}  // namespace trainctl
