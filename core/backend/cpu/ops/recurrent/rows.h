// What the steps of recurrent layers share, forward and backward: rows of the tensors, the workspace, and states. A
// thread computes all steps of a few samples, without waiting for other threads. Steps are computed in float32 for any
// dtype of the tensors.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "core/backend/cpu/kernels.h"
#include "core/backend/cpu/simd/dropping.h"
#include "core/backend/cpu/simd/simd.h"
#include "core/graph/ops/recurrent.h"

namespace trainctl::cpu {

// The number of samples for which a thread computes the steps together, so that the samples share the cached values of
// the recurrent kernel.
constexpr std::int64_t recurrent_block = 48;

// The sizes of a recurrent op, and the rows of its tensors that hold a step of a sample.
struct RecurrentRows : RecurrentSizes {
  using RecurrentSizes::RecurrentSizes;

  // The row of x, as [N * T, columns], that holds a step of a sample.
  std::int64_t row(std::int64_t sample, std::int64_t step) const { return sample * steps + position_in_x(step); }
  // The row of y or dy that holds a step of a sample; -1 if y does not hold the step.
  std::int64_t row_of_y(std::int64_t sample, std::int64_t step) const {
    return has_y(step) ? sample * (a.sequences ? steps : 1) + position_in_y(step) : -1;
  }
  // The smallest number of samples that is worth a thread.
  std::int64_t grain() const { return std::max<std::int64_t>(1, 16 * element_grain / (steps * units * columns)); }
};

// The layout of a workspace of arrays of float32 values, which begin at whole vectors.
class WorkspaceLayout {
 public:
  // Adds an array and returns its offset in values.
  std::int64_t add(std::int64_t values) { return std::exchange(end_, end_ + (values + 15) / 16 * 16); }
  std::int64_t bytes() const { return end_ * size_of(DType::float32); }

 private:
  std::int64_t end_ = 0;
};

// The input with this number; null if the number is negative.
template <class T>
const T* input_or_null(const Buffers& buffers, int number) {
  return number < 0 ? nullptr : buffers.in<T>(static_cast<std::size_t>(number));
}

// Returns the row in float32: the row itself, or its values converted to `scratch`.
template <class T>
TRAINCTL_INLINE inline const float* widened(const T* row, std::int64_t count, float* scratch) {
  if constexpr (std::is_same_v<T, float>) {
    static_cast<void>(count), static_cast<void>(scratch);
    return row;
  } else {
#pragma omp simd
    for (std::int64_t i = 0; i < count; ++i) scratch[i] = load(row[i]);
    return scratch;
  }
}

template <class T>
TRAINCTL_INLINE inline void store_row(const float* from, std::int64_t count, T* to) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) to[i] = store<T>(from[i]);
}

// Returns load(store<T>(value)), computed with 32-bit operations only.
template <class T>
TRAINCTL_INLINE inline float rounded(float value) {
  if constexpr (std::is_same_v<T, float>) return value;
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t nearest = (bits + 0x7fff + ((bits >> 16) & 1)) & 0xffff0000u;
  return (bits & 0x7fffffff) > 0x7f800000 ? value : std::bit_cast<float>(nearest);
}

// Copies the states of samples [first, last), rows of `units` values, to float32 rows; sets them to 0 if there are
// none.
template <class T>
void begin_states(const T* states, std::int64_t first, std::int64_t last, std::int64_t units, float* to) {
  for (std::int64_t i = first * units; i < last * units; ++i) to[i] = states == nullptr ? 0.0f : load(states[i]);
}

// Sets the rows of samples [first, last) to the factors of h in the recurrent product: 0 or 1 / (1 - rate).
inline void draw_factors(const RecurrentDropout& dropout, const std::int64_t* numbers, const std::int64_t* step,
                         std::int64_t first, std::int64_t last, std::int64_t units, float* factors) {
  const RandomKey key{dropout.seed, Purpose::dropout, static_cast<std::uint32_t>(*step), dropout.layer};
  std::fill_n(factors + first * units, (last - first) * units, 1.0f);
  for (std::int64_t n = first; n < last; ++n) {
    float* const row = factors + n * units;
    drop_elements(key, static_cast<std::uint64_t>(numbers[n]), dropout.rate, row, row, 0, units);
  }
}

// Multiplies rows of the same layout, with results rounded to T.
template <class T>
void multiply_rows(const float* a, const float* b, std::int64_t count, float* result) {
  simd([=]() TRAINCTL_INLINE {
#pragma omp simd
    for (std::int64_t i = 0; i < count; ++i) result[i] = rounded<T>(a[i] * b[i]);
  });
}

// Lowers a Forward or a Backward.
template <class Scan>
Lowering lower_scan(const LowerContext& context, const RecurrentRows& sizes) {
  const Scan scan(context, sizes);
  return own_kernel(context, scan, scan.layout.bytes());
}

}  // namespace trainctl::cpu
