// Layer normalisation over the last dimension, forward and backward, row by row.
#include "core/graph/ops/normalization/layer_norm.h"

#include <cmath>

#include "core/backend/cpu/kernels.h"
#include "core/backend/cpu/simd/narrowing.h"

namespace trainctl::cpu {
namespace {

// The number of rows of a tensor, and of values in a row.
struct Rows {
  std::int64_t rows, values;

  explicit Rows(const Shape& shape) : rows(shape.count() / shape.back()), values(shape.back()) {}
};

// Normalises a row of n values. gamma and beta may be null.
template <class T>
TRAINCTL_INLINE inline void normalise_row(const T* x, std::int64_t n, const LayerNormAttributes& a, const float* gamma,
                                          const float* beta, T* y, float* mean, float* rstd) {
  const auto value = [=](std::int64_t k) TRAINCTL_INLINE { return load(x[k]); };
  const float average = a.centered ? lane_sum<float>(n, value) / static_cast<float>(n) : 0.0f;
  const auto square = [=](std::int64_t k) TRAINCTL_INLINE {
    const float difference = load(x[k]) - average;
    return difference * difference;
  };
  const float scale = 1.0f / std::sqrt(lane_sum<float>(n, square) / static_cast<float>(n) + a.epsilon);
  store_each(y, 0, n, [=](std::int64_t k) TRAINCTL_INLINE {
    const float normal = (load(x[k]) - average) * scale;
    return (gamma ? gamma[k] : 1.0f) * normal + (beta ? beta[k] : 0.0f);
  });
  *mean = average;
  *rstd = scale;
}

// Writes the sum of two rows of n values; y may be one of them.
template <class T>
TRAINCTL_INLINE inline void add_rows(const T* a, const T* b, std::int64_t n, T* y) {
  store_each(y, 0, n, [=](std::int64_t k) TRAINCTL_INLINE { return load(a[k]) + load(b[k]); });
}

// Computes dx of a row, and adds the row's terms to `sums`: n sums of dgamma, then n of dbeta.
template <class T, bool adds>
TRAINCTL_INLINE inline void row_gradient(const NormBackward<T>& b, bool centered, std::int64_t row, std::int64_t n,
                                         float* sums) {
  const T *dy = b.dy + row * n, *x = b.x + row * n;
  [[maybe_unused]] const T* other = adds ? b.other + row * n : nullptr;
  T* dx = b.dx + row * n;
  const float* gamma = b.gamma;
  const float mean = b.mean[row], rstd = b.rstd[row];
  const auto slope = [=](std::int64_t k) TRAINCTL_INLINE { return load(dy[k]) * (gamma ? gamma[k] : 1.0f); };
  const auto product = [=](std::int64_t k) TRAINCTL_INLINE { return slope(k) * (load(x[k]) - mean); };
  const float average = centered ? lane_sum<float>(n, slope) / static_cast<float>(n) : 0.0f;
  const float projection = lane_sum<float>(n, product) * rstd / static_cast<float>(n);
  float *dgamma = sums, *dbeta = sums + n;
  store_each(dx, 0, n, [=](std::int64_t k) TRAINCTL_INLINE {
    const float normal = (load(x[k]) - mean) * rstd, gradient = load(dy[k]);
    dgamma[k] += gradient * normal;
    dbeta[k] += gradient;
    float value = rstd * (slope(k) - average - normal * projection);
    if constexpr (adds) value += load(other[k]);
    return value;
  });
}

// Each chunk of rows has partial sums of its own, so that the order of addition depends on the shape only.
constexpr std::int64_t max_chunks = 64;

std::int64_t chunk_rows(const Rows& shape) {
  return std::max({std::int64_t{1}, element_grain / shape.values, (shape.rows + max_chunks - 1) / max_chunks});
}

}  // namespace

Lowering lower_layer_norm(const LowerContext& context) {
  const Rows shape(context.input(0).shape);
  return with_type(context.input(0).dtype, [&, a = context.op.as<LayerNorm>().a](auto type) {
    using T = decltype(type);
    return own_kernel(context, [=](const Buffers& buffers) {
      const std::size_t next = a.residual ? 2 : 1;
      const T *first = buffers.in<T>(0), *second = a.residual ? buffers.in<T>(1) : nullptr;
      T *y = buffers.out<T>(0), *sum = a.residual ? buffers.out<T>(3) : nullptr;
      const T* x = a.residual ? sum : first;
      const float* gamma = a.scale ? buffers.in<float>(next) : nullptr;
      const float* beta = a.center ? buffers.in<float>(a.scale ? next + 1 : next) : nullptr;
      float *mean = buffers.out<float>(1), *rstd = buffers.out<float>(2);
      const std::int64_t n = shape.values;
      parallel_ranges(shape.rows, std::max<std::int64_t>(1, element_grain / 4 / n),
                      [=](std::int64_t begin, std::int64_t end) {
                        simd([=]() TRAINCTL_INLINE {
                          for (std::int64_t row = begin; row < end; ++row) {
                            if (sum != nullptr) add_rows(first + row * n, second + row * n, n, sum + row * n);
                            normalise_row(x + row * n, n, a, gamma, beta, y + row * n, mean + row, rstd + row);
                          }
                        });
                      });
    });
  });
}

Lowering lower_layer_norm_grad(const LowerContext& context) {
  const auto& def = context.op.as<LayerNormGrad>();
  const Rows shape(context.input(1).shape);
  const std::int64_t each = chunk_rows(shape), chunks = (shape.rows + each - 1) / each;
  const std::int64_t workspace = chunks * 2 * shape.values * size_of(DType::float32);
  const int other = def.adds ? def.other() : -1;
  return with_type(context.input(0).dtype, [&, a = def.a, accumulate = def.accumulate](auto type) {
    using T = decltype(type);
    const auto run = [=](const Buffers& buffers) {
      NormBackward<T> b(buffers, a);
      if (other >= 0) b.other = buffers.in<T>(static_cast<std::size_t>(other));
      float* sums = buffers.workspace<float>();
      const std::int64_t n = shape.values, rows = shape.rows;
      parallel_ranges(chunks, 1, [=](std::int64_t begin, std::int64_t end) {
        simd([=]() TRAINCTL_INLINE {
          for (std::int64_t chunk = begin; chunk < end; ++chunk) {
            float* own = sums + chunk * 2 * n;
            std::fill(own, own + 2 * n, 0.0f);
            for (std::int64_t row = chunk * each; row < std::min(rows, (chunk + 1) * each); ++row) {
              if (b.other != nullptr) {
                row_gradient<T, true>(b, a.centered, row, n, own);
              } else {
                row_gradient<T, false>(b, a.centered, row, n, own);
              }
            }
          }
        });
      });
      const auto join = [=](const float* partials, float* total) {
        for (std::int64_t k = 0; total != nullptr && k < n; ++k) {
          double sum = accumulate ? total[k] : 0.0;
          for (std::int64_t chunk = 0; chunk < chunks; ++chunk) sum += partials[chunk * 2 * n + k];
          total[k] = static_cast<float>(sum);
        }
      };
      join(sums, b.dgamma);
      join(sums + n, b.dbeta);
    };
    return own_kernel(context, run, workspace);
  });
}

}  // namespace trainctl::cpu
