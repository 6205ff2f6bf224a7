// The scalars and sums that the kernels of all optimizers use.
#pragma once

#include <cmath>

#include "core/backend/cpu/kernels.h"
#include "core/graph/ops/optimizers/optimizers.h"
#include "core/graph/ops/training/update.h"

namespace trainctl::cpu {

// The scalars that all elements of a step share. If `apply` is false, the step must not change any value.
template <class Rule>
struct Step {
  bool apply = false;
  float learning_rate = 0;
  float scale = 0;  // factor of the summed gradients: 1 / count, times the factor of the clipping; 0 without samples
  float factors[Rule::factors + 1] = {};

  Step(const Buffers& buffers, const Rule& rule, float clip_norm) {
    const float count = *buffers.in<float>(3), norm = *buffers.in<float>(5);
    apply = buffers.in<float>(4)[agree_not_finite] == 0 && std::isfinite(norm);
    learning_rate = *buffers.in<float>(1);
    scale = count > 0 ? (clip_norm > 0 && norm > clip_norm ? clip_norm / norm / count : 1.0f / count) : 0.0f;
    if constexpr (Rule::factors > 0) {
      for (int i = 0; i < Rule::factors; ++i) factors[i] = rule.factor(i, *buffers.in<std::int64_t>(2));
    }
  }
};

// Sums of the squares of weights and of update directions.
struct Squares {
  double weights = 0, directions = 0;
};

// Lowers the step of an optimizer with states that are factors of a matrix.
Lowering lower_factored(const LowerContext& context, const OptimizerUpdate& def, const Adafactor& rule);
// Lowers the step of an optimizer that orthogonalizes matrices.
Lowering lower_orthogonal(const LowerContext& context, const OptimizerUpdate& def, const Muon& rule);

}  // namespace trainctl::cpu
