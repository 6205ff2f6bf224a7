// The base of metrics that read logits or probabilities, and functions that they share.
#pragma once

#include "core/graph/ops/metrics/rule.h"

namespace trainctl {

// log(sum e^x) over a row of logits.
template <class Row>
TRAINCTL_KERNEL_FUNCTION float log_sum_exp(const Row& row) {
  const float top = row.largest([](std::int64_t, float x) TRAINCTL_KERNEL_LAMBDA { return x; });
  return top + Row::Math::log(row.sum([=](std::int64_t, float x) TRAINCTL_KERNEL_LAMBDA { return Row::exp(x - top); }));
}

// A probability whose logarithm is finite.
TRAINCTL_KERNEL_FUNCTION float clipped_probability(float p) {
  return p < 1e-7f ? 1e-7f : p > 1 - 1e-7f ? 1 - 1e-7f : p;  // keeps NaN
}

// The mean of a value that is computed from logits if the link of the loss is `own` (softmax or sigmoid), and otherwise
// from probabilities: the network's predictions, if the loss has the other of the two links.
template <LossLink own>
struct ProbabilityMetric : MeanMetric {
  bool of_logits = false;  // whether it reads logits instead of probabilities

  template <class Flag>
  void adapted(const Flag& flag) const {
    flag("of_logits", of_logits);
  }
  static constexpr bool of_predictions(const MetricSetting& loss) { return loss.link == other; }

 protected:
  // Sets of_logits. Returns `problem` if there are only logits of the other link, and no probabilities; otherwise "".
  std::string adapt_to(const MetricSetting& loss, const char* problem) {
    of_logits = loss.link == own;
    return loss.link == other && !loss.linked ? problem : "";
  }

 private:
  static constexpr LossLink other = own == LossLink::softmax ? LossLink::sigmoid : LossLink::softmax;
};

}  // namespace trainctl
