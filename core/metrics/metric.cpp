// Metric choices, resolved by the loss.
#include "core/metrics/metric.h"

#include <algorithm>

#include "core/base/format.h"
#include "core/graph/ops/metrics.h"
#include "core/spec/values.h"

namespace trainctl {
namespace {

struct AccuracyOptions final : Options {};

struct TopKOptions final : Options {
  std::int64_t k = 5;
};

struct AbsoluteErrorOptions final : Options {};

Section top_k_keys() {
  return Keys<TopKOptions>("top_k_categorical_accuracy",
                           "Share of samples whose class is among the k that the network finds most likely.")
      .key("k", &TopKOptions::k, "How many of the likeliest classes count.", at_least(1));
}

// Why the metric cannot be, or "" where it can.
std::string resolve(const Choice& choice, const ResolvedLoss& loss, std::int64_t width, ResolvedMetric& metric) {
  const bool sparse = targets_of(loss.rule) == LossTargets::class_numbers;
  const bool binary = targets_of(loss.rule) == LossTargets::labels;
  if (choice.name == "accuracy") {
    metric.kind = sparse   ? MetricKind::sparse_categorical_accuracy
                  : binary ? MetricKind::binary_accuracy
                           : MetricKind::categorical_accuracy;
    if (!sparse && !binary && width == 1) return "accuracy has no meaning for a single value: use mean_absolute_error";
  } else if (choice.name == "top_k_categorical_accuracy") {
    metric.kind = MetricKind::top_k_categorical_accuracy;
    metric.k = choice.as<TopKOptions>().k;
    if (binary || width == 1) return "top_k_categorical_accuracy wants classes that exclude each other";
  } else {
    metric.kind = MetricKind::mean_absolute_error;
    metric.of_predictions = loss.folded != FinalActivation::none;
    if (sparse) return "mean_absolute_error wants target values, but the loss takes class numbers";
  }
  return {};
}

}  // namespace

const ChoiceTable& metric_choices() {
  static const ChoiceTable table{
      "metric",
      {Keys<AccuracyOptions>("accuracy",
                             "Share of samples classified rightly: of classes, or of yes-or-no outputs, as the "
                             "loss has it."),
       top_k_keys(),
       Keys<AbsoluteErrorOptions>("mean_absolute_error", "Mean of the absolute differences from target values.")}};
  return table;
}

std::vector<ResolvedMetric> resolve_metrics(const std::vector<Choice>& choices, const ResolvedLoss& loss,
                                            const Shape& output, Reader& reader) {
  std::vector<ResolvedMetric> metrics;
  for (const Choice& choice : choices) {
    ResolvedMetric metric;
    metric.name = choice.name;
    const std::string problem = resolve(choice, loss, output.back(), metric);
    if (!problem.empty()) reader.error(choice.place, problem);
    const bool repeated = std::any_of(metrics.begin(), metrics.end(),
                                      [&](const ResolvedMetric& other) { return other.name == metric.name; });
    if (repeated) reader.error(choice.place, format("metric {} is given twice", choice.name));
    metrics.push_back(std::move(metric));
  }
  return metrics;
}

}  // namespace trainctl
