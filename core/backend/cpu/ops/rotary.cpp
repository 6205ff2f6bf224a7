// Rotary position embedding, row by row: the angles of a position are computed once for all heads.
#include "core/graph/ops/rotary.h"

#include <cstring>
#include <vector>

#include "core/backend/cpu/kernels.h"

namespace trainctl::cpu {
namespace {

constexpr std::int64_t max_pairs = 1024;

// Computes cos[i] and sin[i] of a position for all pairs, by the sum formulas.
TRAINCTL_INLINE inline void angles_at(const RotaryTables& tables, std::int64_t position, double sign, float* cosines,
                                      float* sines) {
  const double* high = tables.high.data() + position / tables.block * tables.pairs * 2;
  const double* low = tables.low.data() + position % tables.block * tables.pairs * 2;
#pragma omp simd
  for (std::int64_t i = 0; i < tables.pairs; ++i) {
    const double c = high[2 * i], s = high[2 * i + 1], by_c = low[2 * i], by_s = low[2 * i + 1];
    cosines[i] = static_cast<float>(c * by_c - s * by_s);
    sines[i] = static_cast<float>(sign * (s * by_c + c * by_s));
  }
}

// Rotates the pairs of one head. The values of pair i are at i * stride and at i * stride + distance.
template <class T>
TRAINCTL_INLINE inline void rotate(const T* x, T* y, std::int64_t pairs, std::int64_t stride, std::int64_t distance,
                                   const float* cosines, const float* sines) {
#pragma omp simd
  for (std::int64_t i = 0; i < pairs; ++i) {
    const float a = load(x[i * stride]), b = load(x[i * stride + distance]);
    y[i * stride] = store<T>(a * cosines[i] - b * sines[i]);
    y[i * stride + distance] = store<T>(a * sines[i] + b * cosines[i]);
  }
}

// The first step that has the same document number as step t, and so have all steps between them.
std::int64_t document_begin(const std::int32_t* documents, std::int64_t t) {
  while (t > 0 && documents[t - 1] == documents[t]) --t;
  return t;
}

struct RotaryRows {
  RotaryAttributes a;
  RotaryTables tables;
  std::int64_t steps, columns;
  double sign;  // -1 to rotate backwards
  std::int64_t positions;

  // Rotates the rows [begin, end). `documents` [rows] and `starts` [samples] may be null.
  template <class T>
  void run(const T* x, const std::int32_t* documents, const std::int32_t* starts, T* y, std::int64_t begin,
           std::int64_t end) const {
    const bool neighbours = a.pairs == RotaryPairs::neighbours;
    const std::int64_t pairs = tables.pairs, stride = neighbours ? 2 : 1, distance = neighbours ? 1 : pairs;
    std::int64_t start = 0;  // the step at which the document begins
    for (std::int64_t row = begin; row < end; ++row) {
      const std::int64_t t = row % steps;
      if (documents != nullptr) {
        if (row == begin) {
          start = document_begin(documents + row - t, t);
        } else if (t == 0 || documents[row] != documents[row - 1]) {
          start = t;
        }
      }
      const std::int64_t position = starts != nullptr ? std::min(starts[row / steps] + t, positions - 1) : t - start;
      const T* from = x + row * columns;
      T* to = y + row * columns;
      if (from != to && a.width < a.head_size) std::memcpy(to, from, static_cast<std::size_t>(columns) * sizeof(T));
      simd([&]() TRAINCTL_INLINE {
        alignas(64) float cosines[max_pairs], sines[max_pairs];
        angles_at(tables, position, sign, cosines, sines);
        for (std::int64_t head = 0; head < columns; head += a.head_size) {
          if (stride == 1) {
            rotate(from + head, to + head, pairs, 1, distance, cosines, sines);
          } else {
            rotate(from + head, to + head, pairs, 2, 1, cosines, sines);
          }
        }
      });
    }
  }
};

}  // namespace

Lowering lower_rotary(const LowerContext& context) {
  const auto& def = context.op.as<Rotary>();
  require(def.a.width <= 2 * max_pairs, "rotary: more than 2048 values of a head are rotated");
  const Shape& x = context.input(0).shape;
  const bool has_starts = def.positions != 0, has_documents = !has_starts && context.op.inputs.size() > 1;
  const std::int64_t positions = has_starts ? def.positions : x[1];
  const auto rows = std::make_shared<const RotaryRows>(
      RotaryRows{def.a, RotaryTables(def.a, positions), x[1], x[2], def.backwards ? -1.0 : 1.0, positions});
  return with_type(context.input(0).dtype, [&, count = x[0] * x[1]](auto type) {
    using T = decltype(type);
    return own_kernel(context, [=](const Buffers& buffers) {
      const T* from = buffers.in<T>(0);
      const auto* documents = has_documents ? buffers.in<std::int32_t>(1) : nullptr;
      const auto* starts = has_starts ? buffers.in<std::int32_t>(1) : nullptr;
      T* to = buffers.out<T>(0);
      parallel_ranges(
          count, std::max<std::int64_t>(1, element_grain / rows->columns),
          [=](std::int64_t begin, std::int64_t end) { rows->run(from, documents, starts, to, begin, end); });
    });
  });
}

}  // namespace trainctl::cpu
