// Metrics: sums over samples and their positions, of the same inputs as the losses' (core/graph/ops/losses/losses.h).
#pragma once

#include <variant>

#include "core/graph/op.h"
#include "core/graph/ops/metrics/accuracy.h"
#include "core/graph/ops/metrics/auc.h"
#include "core/graph/ops/metrics/confusion_matrix.h"
#include "core/graph/ops/metrics/cosine_similarity.h"
#include "core/graph/ops/metrics/mean_absolute_error.h"
#include "core/graph/ops/metrics/mean_iou.h"
#include "core/graph/ops/metrics/mean_squared_error.h"
#include "core/graph/ops/metrics/precision_recall.h"
#include "core/graph/ops/metrics/r2_score.h"
#include "core/graph/ops/metrics/top_k_categorical_accuracy.h"

namespace trainctl {

// All metrics; each is in a file in core/graph/ops/metrics/ (see rule.h there).
using MetricRule = std::variant<Accuracy, TopKCategoricalAccuracy, PrecisionScore, Recall, F1Score, Specificity,
                                MeanIou, Auc, MeanAbsoluteError, MeanAbsolutePercentageError, MeanSquaredErrorMetric,
                                RootMeanSquaredError, R2Score, CosineSimilarity, ConfusionMatrix>;

std::string_view name_of(const MetricRule& rule);
int sums_of(const MetricRule& rule);
// The columns of a metric that is the table of its sums; 0 where it is one value.
int columns_of(const MetricRule& rule);
// The metric, from its sums over all samples and the sum `count` of the samples' weights; 0 where it is a table.
double value_of(const MetricRule& rule, std::span<const double> sums, double count);

// What data lacks where the metric is not a number: "samples of both answers"; "" where that cannot be said.
std::string_view wants_of(const MetricRule& rule);

// Inputs: predictions, or where it takes them the class sums of all ranks [N, P..., ranks * class_sums], then targets
// and weights. Outputs: the rule's sums, weighted, a float32 scalar or vector (role reduced).
struct Metric final : OpDef {
  MetricRule rule;
  bool accumulate = false;  // add to what the sums hold
  bool of_sums =
      false;  // takes class sums (core/graph/ops/losses/losses.h) in the place of predictions: accuracy alone

  Metric(MetricRule r, bool a, bool sums = false) : rule(std::move(r)), accumulate(a), of_sums(sums) {}
  std::string_view kind() const override { return "metric"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
};

}  // namespace trainctl
