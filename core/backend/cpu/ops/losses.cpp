// Losses with their gradients: sums over samples.
#include "core/graph/ops/losses.h"

#include <cmath>
#include <limits>

#include "core/backend/cpu/kernels.h"
#include "core/backend/cpu/simd/math.h"

namespace trainctl::cpu {
namespace {

struct LossShape {
  std::int64_t samples, values;  // predictions are [samples, values]
  float smoothing;
};

// How a class's target is found: by number, or as a row of values; smoothed as in Keras.
struct SparseTarget {
  std::int64_t label;
  float on, off;
  TRAINCTL_INLINE float operator()(std::int64_t k) const { return k == label ? on : off; }
};
struct DenseTarget {
  const float* row;
  float scale, shift;
  TRAINCTL_INLINE float operator()(std::int64_t k) const { return row[k] * scale + shift; }
};

// Cross-entropy of the softmax of one row of logits: log(sum e^x) * sum(t) - sum(t x). dx = weight * (softmax sum(t) -
// t).
template <class T, class Target>
TRAINCTL_INLINE inline float softmax_row(const T* x, std::int64_t n, const Target& target, float weight, T* dx) {
  float top = load(x[0]);
  for (std::int64_t k = 1; k < n; ++k) top = load(x[k]) > top ? load(x[k]) : top;
  const auto term = [=](std::int64_t k) TRAINCTL_INLINE { return exp_approx(load(x[k]) - top); };
  const float sum = lane_sum<float>(n, term);
  const auto weight_of = [=](std::int64_t k) TRAINCTL_INLINE { return target(k); };
  const auto product = [=](std::int64_t k) TRAINCTL_INLINE { return target(k) * (load(x[k]) - top); };
  const float total = lane_sum<float>(n, weight_of);
  const float loss = std::log(sum) * total - lane_sum<float>(n, product);
  if (dx != nullptr) {
    const float scale = total / sum;
#pragma omp simd
    for (std::int64_t k = 0; k < n; ++k) {
      dx[k] = store<T>(weight * (exp_approx(load(x[k]) - top) * scale - target(k)));
    }
  }
  return loss;
}

template <class T>
float binary_row(const T* x, std::int64_t n, const DenseTarget& target, float weight, T* dx) {
  float loss = 0;
  for (std::int64_t k = 0; k < n; ++k) {
    const float value = load(x[k]), t = target(k);
    loss += std::max(value, 0.0f) - value * t + std::log1p(std::exp(-std::abs(value)));
    if (dx != nullptr) dx[k] = store<T>(weight * (sigmoid(value) - t) / static_cast<float>(n));
  }
  return loss / static_cast<float>(n);
}

template <class T>
float squared_row(const T* x, std::int64_t n, const float* target, float weight, T* dx) {
  float loss = 0;
  simd([=, &loss]() TRAINCTL_INLINE {
    const auto square = [=](std::int64_t k) TRAINCTL_INLINE {
      const float difference = load(x[k]) - target[k];
      return difference * difference;
    };
    loss = lane_sum<float>(n, square) / static_cast<float>(n);
    if (dx == nullptr) return;
    const float scale = 2.0f * weight / static_cast<float>(n);
#pragma omp simd
    for (std::int64_t k = 0; k < n; ++k) dx[k] = store<T>(scale * (load(x[k]) - target[k]));
  });
  return loss;
}

// The loss of a sample, and its gradient times the weight.
template <class T>
float row_loss(LossKind kind, const LossShape& s, const T* x, const void* targets, std::int64_t row, float weight,
               T* dx) {
  const std::int64_t n = s.values;
  const auto values = [&] { return static_cast<const float*>(targets) + row * n; };
  float loss = 0;
  switch (kind) {
    case LossKind::sparse_categorical_crossentropy: {
      const std::int64_t label = static_cast<const std::int32_t*>(targets)[row];
      if (label < 0 || label >= n) return std::numeric_limits<float>::quiet_NaN();
      const float off = s.smoothing / static_cast<float>(n);
      simd([=, &loss]() TRAINCTL_INLINE {
        loss = softmax_row(x, n, SparseTarget{label, 1.0f - s.smoothing + off, off}, weight, dx);
      });
      return loss;
    }
    case LossKind::categorical_crossentropy: {
      const DenseTarget target{values(), 1.0f - s.smoothing, s.smoothing / static_cast<float>(n)};
      simd([=, &loss]() TRAINCTL_INLINE { loss = softmax_row(x, n, target, weight, dx); });
      return loss;
    }
    case LossKind::binary_crossentropy:
      return binary_row(x, n, DenseTarget{values(), 1.0f - s.smoothing, 0.5f * s.smoothing}, weight, dx);
    case LossKind::mean_squared_error:
      return squared_row(x, n, values(), weight, dx);
  }
  require(false, "a loss of a known kind");
  return loss;
}

}  // namespace

Lowering lower_loss(const LowerContext& context) {
  const auto& def = context.op.as<Loss>();
  const Shape& shape = context.input(0).shape;
  const LossShape s{shape[0], shape.count() / std::max<std::int64_t>(shape[0], 1), def.label_smoothing};
  const std::int64_t workspace = s.samples * size_of(DType::float32);
  return with_type(
      context.input(0).dtype, [&, kind = def.loss, training = def.training, accumulate = def.accumulate](auto type) {
        using T = decltype(type);
        return own_kernel(
            context,
            [=](const Places& places) {
              const T* x = places.in<T>(0);
              const void* targets = places.in<void>(1);
              const float* weights = places.in<float>(2);
              T* dx = training ? places.out<T>(2) : nullptr;
              float* losses = places.workspace<float>();
              const std::int64_t n = s.values;
              const std::int64_t grain = std::max<std::int64_t>(1, element_grain / 8 / n);
              parallel_ranges(s.samples, grain, [=](std::int64_t begin, std::int64_t end) {
                for (std::int64_t row = begin; row < end; ++row) {
                  T* gradient = dx ? dx + row * n : nullptr;
                  if (weights[row] == 0) {  // a skipped sample may hold anything
                    losses[row] = 0;
                    if (dx) std::fill(gradient, gradient + n, T{});
                  } else {
                    losses[row] = weights[row] * row_loss(kind, s, x + row * n, targets, row, weights[row], gradient);
                  }
                }
              });
              const auto add_up = [&](const float* values, float* total) {
                float sum = accumulate ? *total : 0.0f;
                for (std::int64_t row = 0; row < s.samples; ++row) sum += values[row];
                *total = sum;
              };
              add_up(losses, places.out<float>(0));
              add_up(weights, places.out<float>(1));
            },
            workspace);
      });
}

}  // namespace trainctl::cpu
