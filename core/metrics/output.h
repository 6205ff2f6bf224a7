// An output of the network, or an added loss, with its loss, weight and metrics, resolved against the network.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/graph/ops/metrics/token_bytes.h"
#include "core/graph/ops/whole_batch.h"
#include "core/metrics/loss.h"
#include "core/metrics/metric.h"
#include "core/metrics/target_encoding.h"
#include "core/metrics/targets.h"

namespace trainctl {

struct ResolvedOutput {
  std::string name;  // name of the output's layer; empty: the only output
  ResolvedLoss loss;
  double weight = 1;                    // weight of the loss in the weighted sum of all outputs' losses
  std::vector<ResolvedMetric> metrics;  // in the order of the config
  bool perplexity = false;              // whether e to the power of the loss is a result
  ByteCounts token_bytes;               // of the tokens that are targets, if bits_per_byte is a result; else null
  // The cross-entropy without label smoothing and z-loss, if perplexity or bits_per_byte follow from it instead of from
  // the loss, which has these terms.
  std::optional<LossRule> plain_crossentropy = {};
  TargetEncoding target_encoding = TargetEncoding::values;
  std::int64_t target_length = 0;  // numbers of a target, for a loss over sequences
  std::int64_t rows_each = 1;      // rows of the output that share one weight
  std::int64_t rows_counted = 1;   // rows of the output for each unit of a step's count

  bool is_added = false;     // whether it is an added loss, which has values [N] of samples and no targets and metrics
  SampleShares shares = {};  // of an added loss over the whole batch: the samples of all ranks; else no counts
  // Whether the output has a padding mask that gives its positions weights. A loss over sequences reads the mask
  // itself.
  bool is_masked = false;
  // Whether the loss is divided by the number of the output's own positions, because another output leaves out other
  // positions.
  bool counts_itself = false;

  // Whether there is a loss; without one, there are no targets, sums and results.
  bool has_loss() const { return !loss.is_none; }
  // Leaves out the loss and what is computed with it.
  void leave_out_loss() {
    loss.is_none = true;
    is_masked = false;
    loss.ignore_index.reset();
    metrics.clear();
    perplexity = false;
    token_bytes = nullptr;
    plain_crossentropy.reset();
  }
  // Whether the targets of the loss are smoothed, so that its class sums are those of other targets than the output's.
  bool smooths_targets() const {
    return plain_crossentropy && std::visit([](const auto& rule) { return rule.smoothing(2).shift != 0; }, loss.rule);
  }
  // The number of sums that belong to no metric: the bytes of tokens, and the cross-entropy without further terms.
  std::ptrdiff_t further_sums() const { return (token_bytes ? 1 : 0) + (plain_crossentropy ? 1 : 0); }
  // Whether losses and metrics leave out positions, by a padding mask or the target.
  bool masks() const { return is_masked || loss.ignore_index.has_value(); }
  // The type of the targets in a batch, for a loss of predictions with this shape.
  TensorType targets_type(const Shape& predictions) const {
    if (is_over_sequences(loss.rule)) return {{predictions[0], target_length}, DType::int32};
    return target_type(target_encoding, predictions);
  }
  // The factor of the gradient of the sum of losses, which the update divides by the step's count.
  float gradient_scale() const { return static_cast<float>(weight / static_cast<double>(rows_counted)); }
  // The name of a result and its tensor, as Keras names them: "digit_loss", or "loss" for the only output.
  std::string prefixed(const std::string& result) const { return name.empty() ? result : name + "_" + result; }
};

}  // namespace trainctl
