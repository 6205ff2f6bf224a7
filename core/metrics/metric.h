// The metrics of the config, resolved for the loss as in Keras.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/graph/ops/metrics/metrics.h"
#include "core/graph/ops/metrics/token_bytes.h"
#include "core/metrics/choices.h"
#include "core/metrics/loss.h"
#include "core/metrics/monitor.h"
#include "core/metrics/output_expression.h"
#include "core/metrics/target_encoding.h"

namespace trainctl {

// A metric of the user's own: an expression under a name.
struct MetricExpression : OutputExpression {
  Located<std::string> name;
  std::optional<MonitorMode> mode;  // whether smaller or greater values are better; empty: not given
};

// The base of all metrics' options. A metric has the options of its rule (core/graph/ops/metrics/), or no rule if it
// follows from the loss: perplexity and bits_per_byte.
struct MetricOptions : Options {
  virtual std::optional<MetricRule> rule() const = 0;
  // The expression of the metric; null if it is not an expression.
  virtual std::shared_ptr<const MetricExpression> expression() const { return nullptr; }
};

struct ResolvedMetric {
  std::string name;             // of its result: "accuracy"
  MetricRule rule;              // adapted to the loss
  bool of_predictions = false;  // whether its op reads the predictions instead of the loss's logits
  SourceLocation location;
  std::shared_ptr<const OutputExpression> expression = {};  // of a metric that is an expression
};

// The name of a metric's result: the name in the config of a metric that is an expression, otherwise the metric's name.
std::string result_name(const Choice& metric);

// Resolves the metrics of an output [n, K] that have a rule. Reports metrics that do not fit the loss, and metrics
// named twice.
std::vector<ResolvedMetric> resolve_metrics(const std::vector<Choice>& choices, const ResolvedLoss& loss,
                                            const Shape& output, Reader& reader);

// Whether the metrics include perplexity, e to the power of the mean cross-entropy. Reports an error if the loss is not
// the cross-entropy of classes.
bool wants_perplexity(const std::vector<Choice>& choices, const ResolvedLoss& loss, Reader& reader);

// If the metrics include bits_per_byte, the bytes of the tokens that are targets; otherwise null. Reports an error if
// the loss is not the cross-entropy of classes, or if the targets are not tokens of text.
ByteCounts bytes_for_bits_per_byte(const std::vector<Choice>& choices, const ResolvedLoss& loss,
                                   const TargetInfo& targets, Reader& reader);

// The cross-entropy of classes without label smoothing and z-loss, if the loss has one of these terms; else no value.
std::optional<LossRule> crossentropy_without_terms(const LossRule& loss);

}  // namespace trainctl
