// What the differentiation rules of several ops share.
#pragma once

#include "core/graph/graph.h"
#include "core/graph/ops/activations.h"

namespace trainctl {

// The gradient before an op's fused activation: that by its first output, where a function is fused times f'(y).
TensorId gradient_before(const ActivationFunction& function, const Op& op, Differentiator& differentiator);

// The parameter's gradient where it trains, else no_tensor: a kernel that computes it writes to memory nobody reads.
inline TensorId gradient_if_wanted(TensorId parameter, Differentiator& differentiator) {
  return differentiator.wants(parameter) ? differentiator.parameter_gradient(parameter) : no_tensor;
}

}  // namespace trainctl
