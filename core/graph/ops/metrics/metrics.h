// Metrics: the op computes sums over samples and positions, from the same inputs as losses
// (core/graph/ops/losses/losses.h).
#pragma once

#include <variant>

#include "core/graph/op.h"
#include "core/graph/ops/metrics/accuracy.h"
#include "core/graph/ops/metrics/auc.h"
#include "core/graph/ops/metrics/binary_crossentropy.h"
#include "core/graph/ops/metrics/categorical_crossentropy.h"
#include "core/graph/ops/metrics/categorical_hinge.h"
#include "core/graph/ops/metrics/confusion_matrix.h"
#include "core/graph/ops/metrics/cosine_similarity.h"
#include "core/graph/ops/metrics/expression_metric.h"
#include "core/graph/ops/metrics/huber.h"
#include "core/graph/ops/metrics/kl_divergence.h"
#include "core/graph/ops/metrics/mean_absolute_error.h"
#include "core/graph/ops/metrics/mean_iou.h"
#include "core/graph/ops/metrics/mean_loss.h"
#include "core/graph/ops/metrics/mean_squared_error.h"
#include "core/graph/ops/metrics/precision_recall.h"
#include "core/graph/ops/metrics/r2_score.h"
#include "core/graph/ops/metrics/sequences.h"
#include "core/graph/ops/metrics/top_k_categorical_accuracy.h"

namespace trainctl {

// All metrics; each is in a file in core/graph/ops/metrics/ (see rule.h there).
using MetricRule = std::variant<Accuracy, TopKCategoricalAccuracy, PrecisionScore, Recall, F1Score, Specificity,
                                MeanIou, Auc, MeanAbsoluteError, MeanAbsolutePercentageError, MeanSquaredErrorMetric,
                                RootMeanSquaredError, R2Score, CosineSimilarity, MeanSquaredLogarithmicErrorMetric,
                                LogCoshError, PoissonMetric, HingeMetric, SquaredHingeMetric, HuberMetric,
                                CategoricalHingeMetric, CategoricalCrossentropyMetric, BinaryCrossentropyMetric,
                                KlDivergenceMetric, ConfusionMatrix, EditDistance, SequenceAccuracy, ExpressionMetric>;

std::string_view name_of(const MetricRule& rule);
// The number of sums.
int sums_of(const MetricRule& rule);
// The number of columns of a metric that is a table of sums; 0 for other metrics.
int columns_of(const MetricRule& rule);
// The value of the metric, from its sums over all samples and `count`, the sum of the samples' weights; 0 for a table.
double value_of(const MetricRule& rule, std::span<const double> sums, double count);

// Whether the metric compares sequences: it needs a loss over sequences, which has no other metrics.
bool is_over_sequences(const MetricRule& rule);

// The data that is missing if the metric is not a number, such as "samples of both answers"; "" for other metrics.
std::string_view wants_of(const MetricRule& rule);

// Why the metric, or a part of it, is 0 although it would divide by 0, such as "counts as 0, since no sample is
// predicted as positive"; "" if it does not divide by 0.
std::string zero_division_of(const MetricRule& rule, std::span<const double> sums);

// Inputs: predictions (if `of_sums`, the class sums of all ranks [N, P..., ranks * class_sums]), targets, weights; for
// sequences, possibly a mask.
// Outputs: the weighted sums of the rule, a float32 scalar or vector (role reduced).
struct Metric final : OpDef {
  MetricRule rule;
  bool accumulate = false;  // add to the sums instead of overwriting them
  bool of_sums = false;     // reads class sums (core/graph/ops/losses/losses.h) instead of predictions; accuracy only
  bool masked = false;      // has a mask of the steps as input; only for sequences

  Metric(MetricRule r, bool a, bool sums = false) : rule(std::move(r)), accumulate(a), of_sums(sums) {}
  std::string_view kind() const override { return "metric"; }
  std::string attributes() const override;
  std::vector<TensorType> outputs(std::span<const TensorType> inputs) const override;
  OutputPlacements placements(const PlacementQuery& query) const override;
};

}  // namespace trainctl
