// Rules of metrics.
#include "core/graph/ops/metrics.h"

#include "core/graph/ops/attributes.h"
#include "core/graph/placement_rules.h"

namespace trainctl {

std::string_view name_of(MetricKind kind) {
  switch (kind) {
    case MetricKind::sparse_categorical_accuracy:
      return "sparse_categorical_accuracy";
    case MetricKind::categorical_accuracy:
      return "categorical_accuracy";
    case MetricKind::binary_accuracy:
      return "binary_accuracy";
    case MetricKind::top_k_categorical_accuracy:
      return "top_k_categorical_accuracy";
    case MetricKind::mean_absolute_error:
      return "mean_absolute_error";
  }
  return "?";
}

std::string Metric::attributes() const {
  AttributeText text;
  text.word(name_of(metric));
  if (metric == MetricKind::top_k_categorical_accuracy) text.value("k", k);
  return text.flag("accumulate", accumulate).text();
}

std::vector<TensorType> Metric::outputs(std::span<const TensorType>) const { return {{Shape{}, DType::float32}}; }

OutputPlacements Metric::placements(const PlacementQuery& query) const {
  const std::string row = rows(query.input_types[0]);
  const bool numbers = query.input_types[1].shape.rank() < query.input_types[0].shape.rank();
  const PlacementRule rule{{row + ".", numbers ? row : row + ".", row}, {"+" + row}};
  return kept_if(accumulate, place_by(rule, query), query);
}

}  // namespace trainctl
