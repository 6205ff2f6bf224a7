// Metrics of outputs with a loss over sequences: greedy decoding takes the likeliest class of each step, merges
// repeated classes and removes blanks, and the result is compared with the target.
#pragma once

#include "core/graph/ops/metrics/rule.h"

namespace trainctl {

// The base: a metric is the mean of a value over the samples, which follows from the edit distance (Levenshtein, 1966)
// between the decoded sequence and the target.
struct SequenceMetric {
  int mask_index = 0;  // the class that is the blank

  static constexpr MetricOver over = MetricOver::sequences;

  template <class Key>
  static void options(const Key&) {}
  std::string adapt(const MetricSetting& loss) {
    mask_index = loss.mask_index;
    return "";
  }
  template <class Flag>
  void adapted(const Flag& flag) const {
    flag("mask_index", mask_index != 0);
  }
  static constexpr bool of_predictions(const MetricSetting&) { return false; }
  static constexpr int sums() { return 1; }
  static double value(std::span<const double> sums, double count) { return sums[0] / count; }
};

struct EditDistance : SequenceMetric {
  static constexpr const char* name = "edit_distance";
  static constexpr const char* meaning =
      "For the loss ctc: the mean edit distance between the decoded sequence and the target, divided by the length of "
      "the target (by 1 if the target is empty). The distance is the number of classes to insert, remove or replace. "
      "The sequence is decoded greedily: from the likeliest class of each step, repeated classes are merged and blanks "
      "removed.";
  static constexpr bool larger_is_better = false;

  TRAINCTL_KERNEL_FUNCTION float of_distance(int distance, int length) const {
    return static_cast<float>(distance) / static_cast<float>(length > 0 ? length : 1);
  }
};

struct SequenceAccuracy : SequenceMetric {
  static constexpr const char* name = "sequence_accuracy";
  static constexpr const char* meaning =
      "For the loss ctc: the share of samples whose sequence, decoded greedily as for edit_distance, equals the "
      "target.";
  static constexpr bool larger_is_better = true;

  TRAINCTL_KERNEL_FUNCTION float of_distance(int distance, int) const { return distance == 0 ? 1.0f : 0.0f; }
};

}  // namespace trainctl
