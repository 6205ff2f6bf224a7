// The mean squared error: (x - t)^2.
#pragma once

#include <array>

#include "core/graph/ops/losses/rule.h"

namespace trainctl {

struct MeanSquaredError {
  static constexpr const char* name = "mean_squared_error";
  static constexpr std::array aliases{"mse", "MSE"};
  static constexpr const char* meaning =
      "Mean of the squared differences from target values. Whole numbers in arrays are values too, unless data.classes "
      "is set. Class numbers become one-hot if the network has an output for each class, and are used as values if it "
      "has one output.";
  static constexpr LossTargets targets = LossTargets::values;
  static constexpr LossLink link = LossLink::identity;
  static constexpr LossOver over = LossOver::elements;

  template <class Key>
  static void options(const Key&) {}
  Smoothing smoothing(std::int64_t) const { return {}; }
  static double chance(std::int64_t) { return 0; }

  template <class Math>
  TRAINCTL_KERNEL_FUNCTION float element(float x, float t) const {
    return (x - t) * (x - t);
  }
  template <class Math>
  TRAINCTL_KERNEL_FUNCTION float slope(float x, float t) const {
    return 2.0f * (x - t);
  }
};

}  // namespace trainctl
