// Functions for the kernels of batch normalisation: factors of the channels, and the passes over elements.
#pragma once

#include <cmath>

#include "core/backend/cpu/lower.h"
#include "core/backend/cpu/ops/normalization/batch_statistics.h"
#include "core/backend/cpu/simd/mask.h"
#include "core/backend/cpu/simd/narrowing.h"
#include "core/graph/ops/normalization/batch_norm.h"

namespace trainctl::cpu {

// The factors of the normalisation for each column, which are the first three rows of the constants.
struct Factors {
  const float *mean, *scale, *beta;

  // Computes the factors from statistics and the optional gamma and beta. If `means` is null, the means are zero.
  Factors(const BatchNormAttributes& a, const ChannelShape& shape, const float* means, const float* variances,
          const float* gamma, const float* betas, float* constants)
      : mean(constants), scale(constants + shape.columns()), beta(constants + 2 * shape.columns()) {
    const std::int64_t columns = shape.columns();
    for (std::int64_t column = 0; column < columns; ++column) {
      const std::int64_t c = column % shape.channels;
      const auto inverse = static_cast<float>(1.0 / std::sqrt(static_cast<double>(variances[c]) + a.epsilon));
      constants[column] = means ? means[c] : 0.0f;
      constants[columns + column] = gamma ? gamma[c] * inverse : inverse;
      constants[2 * columns + column] = betas ? betas[c] : 0.0f;
    }
  }
  // A value before residual and ReLU: the same bits in the forward and the backward pass.
  TRAINCTL_INLINE float normalised(float x, std::int64_t column) const {
    return (x - mean[column]) * scale[column] + beta[column];
  }
};

inline constexpr std::int64_t masked_values = 2048;  // number of values for which the mask is written together

// y = f((x - mean) * scale + beta [+ residual]), and its mask if `mask` is not null.
template <class T, bool with_residual, bool relu>
void normalise(const ChannelShape& shape, const T* x, const T* residual, const Factors& factors, T* y,
               std::uint8_t* mask) {
  const std::int64_t columns = shape.columns();
  const std::int64_t grain = std::max<std::int64_t>(1, element_grain / columns);
  const auto rows = [=](std::int64_t begin, std::int64_t end) {
    simd([=]() TRAINCTL_INLINE {
      store_rows(y, begin, end, columns, [=](std::int64_t i, std::int64_t c) TRAINCTL_INLINE {
        float value = factors.normalised(load(x[i]), c);
        if constexpr (with_residual) value += load(residual[i]);
        if constexpr (relu) value = value < 0 ? 0.0f : value;
        return value;
      });
    });
  };
  if (mask == nullptr) return parallel_ranges(shape.folded_rows(), grain, rows);
  const std::int64_t block = std::max<std::int64_t>(1, masked_values / columns);  // rows that stay in the cache
  parallel_ranges(shape.folded_rows(), grain, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t first = begin; first < end; first += block) {
      const std::int64_t last = std::min(first + block, end);
      rows(first, last);
      write_mask(y + first * columns, (last - first) * columns, mask + first * columns / 8);
    }
  });
}

// Calls normalise() for the attributes' residual and ReLU.
template <class T>
void apply(const BatchNormAttributes& a, const ChannelShape& shape, const T* x, const T* residual,
           const Factors& factors, T* y, std::uint8_t* mask = nullptr) {
  if (a.residual && a.relu) return normalise<T, true, true>(shape, x, residual, factors, y, mask);
  if (a.residual) return normalise<T, true, false>(shape, x, residual, factors, y, mask);
  if (a.relu) return normalise<T, false, true>(shape, x, residual, factors, y, mask);
  normalise<T, false, false>(shape, x, residual, factors, y, mask);
}

// The rows and channels of x. With a padding mask, a row is one position (ChannelShape::fold).
inline ChannelShape channel_shape(const TensorType& type, bool masked = false) {
  return {type.shape.count() / type.shape.back(), type.shape.back(), !masked};
}

// The tensors of a backward pass; a pointer is null if the op does not have the tensor.
template <class T>
struct Backward {
  const T* dy;
  const T* x;
  const T* y;
  const std::uint8_t* bits;
  T* dx;
  T* dresidual;
  const std::uint8_t* shown = nullptr;  // the padding mask
};

// The addresses of the gradient's first pass, in the order of BatchNormGrad and SynchronizedBatchNormSums: inputs dy,
// x, bits or y if the mask comes from one of them, gamma, beta, mean and variance, and of a masked BatchNormGrad the
// padding mask and the number of positions that it shows; outputs dx or the sums, dgamma, dbeta and dresidual. `b` has
// no dx.
template <class T>
struct GradientBuffers {
  Backward<T> b{};
  const float *gamma = nullptr, *beta = nullptr, *mean, *variance, *count = nullptr;
  float *dgamma = nullptr, *dbeta = nullptr;

  GradientBuffers(const BatchNormAttributes& a, std::int64_t channels, const Buffers& buffers) {
    std::size_t in = 2, out = 1;
    b.dy = buffers.in<T>(0);
    b.x = buffers.in<T>(1);
    if (a.masks_by_bits(channels)) b.bits = buffers.in<std::uint8_t>(in++);
    if (a.masks_by_y(channels)) b.y = buffers.in<T>(in++);
    if (a.scale) gamma = buffers.in<float>(in++);
    if (a.center && a.masks_by_x()) beta = buffers.in<float>(in++);
    mean = buffers.in<float>(in++);
    variance = buffers.in<float>(in++);
    if (a.masked) {
      b.shown = buffers.in<std::uint8_t>(in++);
      count = buffers.in<float>(in);
    }
    if (a.scale) dgamma = buffers.out<float>(out++);
    if (a.center) dbeta = buffers.out<float>(out++);
    if (a.residual) b.dresidual = buffers.out<T>(out);
  }
};

// The largest value that the forward pass rounds to 0 in T: all larger values become positive numbers. The instruction
// that rounds to bfloat16 makes 0 of all denormal numbers.
template <class T>
float largest_rounded_to_0() {
  if constexpr (std::is_same_v<T, float>) return least_unmasked(DType::float32);
  constexpr float largest_denormal = 0x1.fffffcp-127f;
  return narrows_by_instruction() ? largest_denormal : least_unmasked(DType::bfloat16);
}

// Writes the sums of dy f' and of dy f' (x - mean) over each channel to the totals, and dy f' to dresidual if there is
// one.
template <class T, ReluMask mask, bool with_residual>
void gradient_sums(const ChannelShape& shape, const Backward<T>& b, const Factors& factors, const Scratch& scratch) {
  const std::int64_t columns = shape.columns();
  float* partials = scratch.partials;
  const float most_masked = largest_rounded_to_0<T>();
  channel_sums(
      shape,
      [=, &shape](std::int64_t chunk) TRAINCTL_INLINE {
        if constexpr (mask == ReluMask::bits) {  // dresidual holds dy f' before it is summed
          const std::int64_t first = chunk * shape.chunk_rows * columns;
          apply_mask(b.dy + first, shape.rows_of(chunk) * columns, b.bits + first / 8, b.dresidual + first);
        }
        return [=](std::int64_t i, std::int64_t column) TRAINCTL_INLINE {
          const float x = load(b.x[i]);
          float dy = load(mask == ReluMask::bits ? b.dresidual[i] : b.dy[i]);
          if constexpr (mask == ReluMask::x) dy = factors.normalised(x, column) > most_masked ? dy : 0.0f;
          if constexpr (mask == ReluMask::y) dy = load(b.y[i]) > 0 ? dy : 0.0f;
          if constexpr (with_residual && mask != ReluMask::bits) b.dresidual[i] = store<T>(dy);
          return Pair{dy, dy * (x - factors.mean[column])};
        };
      },
      [=](std::int64_t chunk, std::int64_t column, std::int64_t width, const float* first_sums,
          const float* second_sums) TRAINCTL_INLINE {
        float* target = partials + 2 * (chunk * columns + column);
        for (std::int64_t c = 0; c < width; ++c) {
          target[2 * c] = first_sums[c];
          target[2 * c + 1] = second_sums[c];
        }
      });
  join_channel_sums<2>(shape, partials, scratch.totals);
}

// dx = (dy f' - dy_mean - (x - mean) * slope) * scale; dy_mean and slope are the last rows of the constants. At
// positions that a padding mask hides, dx = dy f' * scale; the rows of the shape are then single positions.
template <class T, ReluMask mask, bool masked>
void gradient_by_input(const ChannelShape& shape, const Backward<T>& b, const Factors& factors,
                       const float* constants) {
  const std::int64_t columns = shape.columns();
  const float* dy_mean = constants + 3 * columns;
  const float* slope = constants + 4 * columns;
  const std::int64_t grain = std::max<std::int64_t>(1, element_grain / columns);
  const float most_masked = largest_rounded_to_0<T>();
  parallel_ranges(shape.folded_rows(), grain, [=](std::int64_t begin, std::int64_t end) {
    simd([=]() TRAINCTL_INLINE {
      const auto store_between = [=](std::int64_t first, std::int64_t last, bool shown) TRAINCTL_INLINE {
        store_rows(b.dx, first, last, columns, [=](std::int64_t i, std::int64_t c) TRAINCTL_INLINE {
          const float x = load(b.x[i]);
          float dy = load(b.dy[i]);
          if constexpr (mask == ReluMask::x) dy = factors.normalised(x, c) > most_masked ? dy : 0.0f;
          const float through = dy - dy_mean[c] - (x - factors.mean[c]) * slope[c];
          return (shown ? through : dy) * factors.scale[c];
        });
      };
      if constexpr (masked) {
        for (std::int64_t row = begin; row < end; ++row) store_between(row, row + 1, b.shown[row] != 0);
      } else {
        store_between(begin, end, true);
      }
    });
  });
}

// Calls gradient_sums() for the attributes' mask and residual.
template <class T>
void gradient_sums(const BatchNormAttributes& a, const ChannelShape& shape, const Backward<T>& b,
                   const Factors& factors, const Scratch& scratch) {
  const std::int64_t channels = shape.channels;
  if (a.masks_by_bits(channels)) return gradient_sums<T, ReluMask::bits, true>(shape, b, factors, scratch);
  if (a.masks_by_y(channels)) return gradient_sums<T, ReluMask::y, true>(shape, b, factors, scratch);
  if (a.masks_by_x()) return gradient_sums<T, ReluMask::x, false>(shape, b, factors, scratch);
  if (a.residual) return gradient_sums<T, ReluMask::none, true>(shape, b, factors, scratch);
  gradient_sums<T, ReluMask::none, false>(shape, b, factors, scratch);
}

inline double inverse_deviation(const BatchNormAttributes& a, float variance) {
  return 1.0 / std::sqrt(static_cast<double>(variance) + a.epsilon);
}

// Computes the gradients of gamma and beta from the sums of a backward pass, and writes or adds them. dgamma and dbeta
// may be null.
inline void parameter_gradients(const BatchNormAttributes& a, std::int64_t channels, const double* sums,
                                const float* variance, bool add, float* dgamma, float* dbeta) {
  for (std::int64_t c = 0; c < channels; ++c) {
    const double inverse = inverse_deviation(a, variance[c]);
    if (dgamma) dgamma[c] = static_cast<float>((add ? dgamma[c] : 0.0) + sums[channels + c] * inverse);
    if (dbeta) dbeta[c] = static_cast<float>((add ? dbeta[c] : 0.0) + sums[c]);
  }
}

// Writes dx. mean(i) returns the sums of a backward pass, divided by the number of values in the statistics: first the
// sums of dy f' of all channels, then the sums of dy f' (x - mean). If there is a residual, b.dy is dy f'.
template <class T, class Mean>
void gradient_by_input(const BatchNormAttributes& a, const ChannelShape& shape, Backward<T> b, const Factors& factors,
                       const float* variance, const Mean& mean, float* constants) {
  const std::int64_t columns = shape.columns(), channels = shape.channels;
  for (std::int64_t column = 0; column < columns; ++column) {
    const std::int64_t c = column % channels;
    const double inverse = inverse_deviation(a, variance[c]);
    constants[3 * columns + column] = static_cast<float>(mean(c));
    constants[4 * columns + column] = static_cast<float>(mean(channels + c) * inverse * inverse);
  }
  if (a.masked && a.masks_by_x()) return gradient_by_input<T, ReluMask::x, true>(shape, b, factors, constants);
  if (a.masked) return gradient_by_input<T, ReluMask::none, true>(shape, b, factors, constants);
  if (a.masks_by_x()) return gradient_by_input<T, ReluMask::x, false>(shape, b, factors, constants);
  gradient_by_input<T, ReluMask::none, false>(shape, b, factors, constants);
}

}  // namespace trainctl::cpu
