// The kernels of this project that compute the gradient of a convolution with respect to its kernel, beside oneDNN's
// implementations.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "core/backend/cpu/lower.h"

namespace trainctl::cpu {

struct OwnWeightGradient {
  std::string implementation;
  bool by_rule;  // whether it is chosen if kernels are not timed
  // Returns the seconds of a call on random data, without those that the gradient of the bias takes beside oneDNN's
  // implementations; see best_seconds().
  std::function<double(double best_so_far)> seconds;
  std::function<Lowering()> lower;
};

// Returns the kernel for the context's op; nullopt if there is none for its shapes and dtype on this processor. The
// context must outlive the result.
std::optional<OwnWeightGradient> own_weight_gradient(const LowerContext& context);

}  // namespace trainctl::cpu
