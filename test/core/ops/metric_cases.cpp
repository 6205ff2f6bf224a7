// Lists the cases of metrics.
#include "test/core/ops/metric_cases.h"

#include "test/catch.h"

namespace trainctl::test {
namespace {

// Returns the rule after it was adapted to six outputs and to a loss with these targets.
template <class Rule>
MetricRule fitted(LossTargets targets, Rule rule = {}) {
  CHECK(rule.adapt({targets, LossLink::identity, false, 6}).empty());
  return rule;
}
MetricRule f1_score(LossTargets targets, MetricAverage average) {
  F1Score rule;
  rule.average = average;
  return fitted(targets, rule);
}

// Returns the rule after it was adapted to six outputs and to a loss with this link, whose input it reads.
template <class Rule>
MetricRule linked(LossTargets targets, LossLink link, float label_smoothing = 0) {
  Rule rule;
  if constexpr (requires { rule.label_smoothing; }) rule.label_smoothing = label_smoothing;
  const MetricSetting setting{targets, link, link != LossLink::identity, 6};
  CHECK(rule.adapt(setting).empty());
  CHECK_FALSE(rule.of_predictions(setting));
  return rule;
}

}  // namespace

const std::vector<MetricCase>& metric_cases() {
  const LossTargets classes = LossTargets::class_numbers, one_hot = LossTargets::distributions;
  const LossTargets answers = LossTargets::labels, numbers = LossTargets::values;
  const LossLink none = LossLink::identity, softmax = LossLink::softmax, sigmoid = LossLink::sigmoid;
  static const std::vector<MetricCase> cases{
      {"metric_sparse_categorical_accuracy", Accuracy{}},
      {"metric_categorical_accuracy", Accuracy{}},
      {"metric_binary_accuracy", Accuracy{{}, true}},
      {"metric_top_k_categorical_accuracy", TopKCategoricalAccuracy{{}, 3}},
      {"metric_mean_absolute_error", MeanAbsoluteError{}},
      {"metric_auc_roc", Auc{}},
      {"metric_auc_pr", Auc{.curve = AucCurve::pr}},
      {"metric_mean_squared_error", MeanSquaredErrorMetric{}},
      {"metric_root_mean_squared_error", RootMeanSquaredError{}},
      {"metric_mean_absolute_percentage_error", MeanAbsolutePercentageError{}},
      {"metric_cosine_similarity", CosineSimilarity{}},
      {"metric_mean_squared_logarithmic_error", MeanSquaredLogarithmicErrorMetric{}},
      {"metric_log_cosh", LogCoshError{}},
      {"metric_poisson", PoissonMetric{}},
      {"metric_hinge", HingeMetric{}},
      {"metric_squared_hinge", SquaredHingeMetric{}},
      {"metric_sparse_categorical_crossentropy_logits", linked<CategoricalCrossentropyMetric>(classes, softmax)},
      {"metric_sparse_categorical_crossentropy_probabilities", linked<CategoricalCrossentropyMetric>(classes, none)},
      {"metric_categorical_crossentropy_logits", linked<CategoricalCrossentropyMetric>(one_hot, softmax)},
      {"metric_categorical_crossentropy_probabilities", linked<CategoricalCrossentropyMetric>(numbers, none)},
      {"metric_categorical_crossentropy_smoothed_logits",
       linked<CategoricalCrossentropyMetric>(one_hot, softmax, 0.125f)},
      {"metric_categorical_crossentropy_smoothed_probabilities",
       linked<CategoricalCrossentropyMetric>(numbers, none, 0.125f)},
      {"metric_binary_crossentropy_logits", linked<BinaryCrossentropyMetric>(answers, sigmoid)},
      {"metric_binary_crossentropy_probabilities", linked<BinaryCrossentropyMetric>(numbers, none)},
      {"metric_binary_crossentropy_smoothed_logits", linked<BinaryCrossentropyMetric>(answers, sigmoid, 0.125f)},
      {"metric_binary_crossentropy_smoothed_probabilities", linked<BinaryCrossentropyMetric>(numbers, none, 0.125f)},
      {"metric_kl_divergence_logits", linked<KlDivergenceMetric>(one_hot, softmax)},
      {"metric_kl_divergence_probabilities", linked<KlDivergenceMetric>(numbers, none)},
      {"metric_categorical_hinge", linked<CategoricalHingeMetric>(one_hot, none)},
      {"metric_huber", HuberMetric{{}, 0.75f}},
      {"metric_r2_score", fitted<R2Score>(numbers)},
      {"metric_precision_classes", fitted<PrecisionScore>(classes)},
      {"metric_precision_answers", fitted<PrecisionScore>(answers)},
      {"metric_recall_classes", fitted<Recall>(classes)},
      {"metric_recall_answers", fitted<Recall>(answers)},
      {"metric_specificity_classes", fitted<Specificity>(classes)},
      {"metric_specificity_answers", fitted<Specificity>(answers)},
      {"metric_mean_iou_classes", fitted<MeanIou>(classes)},
      {"metric_mean_iou_answers", fitted<MeanIou>(answers)},
      {"metric_f1_score_classes", f1_score(classes, MetricAverage::automatic)},
      {"metric_f1_score_one_hot", f1_score(one_hot, MetricAverage::macro)},
      {"metric_f1_score_answers", f1_score(answers, MetricAverage::automatic)},
      {"metric_f1_score_micro", f1_score(classes, MetricAverage::micro)},
      {"metric_f1_score_weighted", f1_score(classes, MetricAverage::weighted)},
      {"metric_f1_score_macro_answers", f1_score(answers, MetricAverage::macro)},
      {"metric_edit_distance", EditDistance{}},
      {"metric_masked_edit_distance", EditDistance{}},
      {"metric_sequence_accuracy", SequenceAccuracy{}},
  };
  return cases;
}

}  // namespace trainctl::test
