// Connectionist temporal classification (Graves et al., 2006): the negative logarithm of the probability that the steps
// of a sample spell its target. A path has one class for each step, with the softmax of the step's logits as
// probabilities. It spells the classes that remain after repeated classes are merged and blanks are removed.
#pragma once

#include "core/graph/ops/losses/rule.h"

namespace trainctl {

struct Ctc {
  int mask_index = 0;
  bool zero_infinity = false;

  static constexpr const char* name = "ctc";
  static constexpr const char* meaning =
      "Connectionist temporal classification, for targets that are sequences without a known position in the input, "
      "such as the characters of a line of handwriting or of speech. The network ends in (steps, classes), and a "
      "target is a row of class numbers, padded with the number of the blank. The loss of a sample is the negative "
      "logarithm of the probability of its target. Steps that a padding mask excludes do not exist.";
  static constexpr LossTargets targets = LossTargets::class_numbers;
  static constexpr LossLink link = LossLink::softmax;
  static constexpr LossOver over = LossOver::sequences;

  template <class Key>
  static void options(const Key& key) {
    key("mask_index", &Ctc::mask_index,
        "The class that is the blank, PyTorch's `blank`. The same number pads targets, so that it is not part of them.",
        between(0, 1 << 24));
    key("zero_infinity", &Ctc::zero_infinity,
        "What happens to a sample with fewer steps than its target needs: one for each class, and one more between two "
        "equal classes. By default, its loss is infinite, and its gradient is not a number. If true, both are 0.",
        Range{});
  }
  Smoothing smoothing(std::int64_t) const { return {}; }
  static double chance(std::int64_t) { return 0; }
};

// The states of the paths that spell a target of `length` classes: blanks have even numbers, and class i of the target
// has the number 2 i + 1. A path begins in one of the first two states, and ends in one of the last two. In each step,
// it stays in its state, moves to the next one, or skips a blank between two different classes.
struct CtcStates {
  const std::int32_t* target;
  int length;

  TRAINCTL_KERNEL_FUNCTION int count() const { return 2 * length + 1; }
  // The number of the class of a state among the blank, which is 0, and the classes of the target.
  TRAINCTL_KERNEL_FUNCTION static int emission(int state) { return state % 2 == 0 ? 0 : state / 2 + 1; }
  // Whether paths move from state - 2 to this state.
  TRAINCTL_KERNEL_FUNCTION bool skips_to(int state) const {
    return state % 2 == 1 && state > 1 && target[state / 2] != target[state / 2 - 1];
  }

  // The logarithms of the probabilities of reaching a state, from those of the step before.
  TRAINCTL_KERNEL_FUNCTION double forward(const double* before, int state) const {
    return log_sum(before[state], state > 0 ? before[state - 1] : impossible(),
                   skips_to(state) ? before[state - 2] : impossible());
  }
  // The logarithms of the probabilities of what follows a state, from those of the step after it, each with its class.
  TRAINCTL_KERNEL_FUNCTION double backward(const double* after, int state) const {
    return log_sum(after[state], state + 1 < count() ? after[state + 1] : impossible(),
                   state + 2 < count() && skips_to(state + 2) ? after[state + 2] : impossible());
  }

  TRAINCTL_KERNEL_FUNCTION static double impossible() { return -static_cast<double>(INFINITY); }  // the logarithm of 0
  TRAINCTL_KERNEL_FUNCTION static double log_sum(double a, double b, double c = impossible()) {
    const double ab = a > b ? a : b, top = ab > c ? ab : c;
    if (top == impossible()) return a + b + c;  // -infinity, or NaN if one of them is NaN
    return top + std::log(std::exp(a - top) + std::exp(b - top) + std::exp(c - top));
  }
};

// Whether greedy decoding appends the likeliest class of a step to the sequence; `before` is that of the step before,
// or -1 in the first step.
TRAINCTL_KERNEL_FUNCTION bool ctc_appends(int likeliest, int before, int mask_index) {
  return likeliest != before && likeliest != mask_index;
}

}  // namespace trainctl
