// The area under the ROC or precision-recall curve of yes-or-no answers, as in Keras: with equally spaced thresholds
// from 0 to 1, the first one just below 0 and the last one just above 1. A prediction counts in the bin of the last
// threshold that it exceeds; positive and negative samples have separate bins. Sums over bins are the counts above each
// threshold.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/graph/ops/metrics/rule.h"

namespace trainctl {

enum class AucCurve { roc, pr };

template <>
struct EnumNames<AucCurve> {
  static constexpr EnumName<AucCurve> names[] = {{AucCurve::roc, "ROC"}, {AucCurve::pr, "PR"}};
};

struct Auc {
  int num_thresholds = 200;
  AucCurve curve = AucCurve::roc;
  bool of_logits = false;  // whether predictions are the sigmoid of the input of the loss

  static constexpr const char* name = "auc";
  static constexpr const char* meaning =
      "Area under the curve of true over false positive rate (ROC), or of precision over recall (PR). The answers of "
      "several outputs are combined.";
  static constexpr bool larger_is_better = true;
  static constexpr const char* wants = "samples of both answers";
  static constexpr MetricOver over = MetricOver::elements;

  template <class Key>
  static void options(const Key& key) {
    key("num_thresholds", &Auc::num_thresholds, "Number of thresholds at which the curve is computed.",
        between(2, 10000));
    key("curve", &Auc::curve, "The curve: ROC, or precision over recall (PR).", Range{});
  }
  std::string adapt(const MetricSetting& loss) {
    of_logits = loss.link == LossLink::sigmoid;
    const bool classes = loss.targets == LossTargets::distributions && loss.linked;
    return of_logits || classes ? ""
                                : "auc needs yes-or-no answers, with binary_crossentropy, or class probabilities, with "
                                  "categorical_crossentropy after a softmax";
  }
  template <class Flag>
  void adapted(const Flag& flag) const {
    flag("of_logits", of_logits);
  }
  static constexpr bool of_predictions(const MetricSetting& loss) { return loss.link == LossLink::softmax; }

  // The bins of the positive samples, then the bins of the negative samples.
  TRAINCTL_KERNEL_FUNCTION int sums() const { return 2 * num_thresholds; }

  template <class Math>
  TRAINCTL_KERNEL_FUNCTION int place(float x, float t) const {
    const float scaled = (of_logits ? Math::sigmoid(x) : x) * static_cast<float>(num_thresholds - 1);
    const int last = num_thresholds - 2;
    int bin = 0;  // NaN is counted in bin 0
    if (scaled > static_cast<float>(last)) {
      bin = last;
    } else if (scaled > 0) {
      const int whole = static_cast<int>(scaled);
      bin = static_cast<float>(whole) < scaled ? whole : whole - 1;
    }
    return t > 0.5f ? bin : num_thresholds + bin;
  }

  double value(std::span<const double> sums, double) const {
    const auto bins = static_cast<std::size_t>(num_thresholds);
    const auto ratio = [](double a, double b) { return b == 0 ? 0.0 : a / b; };
    double yes = 0, no = 0;  // weights of positive and negative samples
    for (std::size_t i = 0; i < bins; ++i) yes += sums[i], no += sums[bins + i];
    // The curve is undefined without positives (no recall), and ROC without negatives (no false positive rate).
    if (yes == 0 || (curve == AucCurve::roc && no == 0)) return std::numeric_limits<double>::quiet_NaN();
    double area = 0, true_above = 0, false_above = 0;  // counts above the upper threshold of bin i
    for (std::size_t i = bins; i-- > 0;) {
      const double true_now = true_above + sums[i], false_now = false_above + sums[bins + i];
      area += curve == AucCurve::roc ? (ratio(false_now, no) - ratio(false_above, no)) *
                                           (ratio(true_now, yes) + ratio(true_above, yes)) / 2
                                     : ratio(under_precision(true_now, false_now, true_above, false_above), yes);
      true_above = true_now;
      false_above = false_now;
    }
    return area;
  }

 private:
  // The area between two thresholds. Between them, true positives are interpolated linearly in predicted positives; the
  // precision is then not linear (Davis and Goadrich, 2006).
  static double under_precision(double true_now, double false_now, double true_above, double false_above) {
    const double now = true_now + false_now, above = true_above + false_above;
    if (now == above) return 0;
    const double slope = (true_now - true_above) / (now - above), intercept = true_above - slope * above;
    const double ratio = now > 0 && above > 0 ? now / above : 1;
    return slope * (true_now - true_above + intercept * std::log(ratio));
  }
};

}  // namespace trainctl
