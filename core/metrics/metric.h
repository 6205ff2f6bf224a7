// Metric choices of the config, resolved by the loss as Keras does.
#pragma once

#include <string>
#include <vector>

#include "core/graph/ops/metrics.h"
#include "core/metrics/loss.h"

namespace trainctl {

// The options of a metric are those of its rule (core/graph/ops/metrics/).
struct MetricOptions : Options {
  virtual MetricRule rule() const = 0;
};

// A choice for each rule: accuracy, top_k_categorical_accuracy, ...
const ChoiceTable& metric_choices();

struct ResolvedMetric {
  std::string name;             // as in the config: "accuracy"
  MetricRule rule;              // adapted to the loss
  bool of_predictions = false;  // takes the network's output for people, not the loss's logits
  Place place;
};

// Reports metrics that have no meaning with the loss, and repeated ones. `output` is [n, K].
std::vector<ResolvedMetric> resolve_metrics(const std::vector<Choice>& choices, const ResolvedLoss& loss,
                                            const Shape& output, Reader& reader);

}  // namespace trainctl
