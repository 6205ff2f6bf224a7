// The transforms of Winograd's minimal filtering F(4x4, 3x3): each maps a small square of vectors to another.
//
// A convolution of one dimension is a product of polynomials, so it is known from its values at 6 points: with d (6
// inputs), g (3 weights) and y (4 outputs),
//
//   y = Q4' ((S Q3 g) * (B d))     and the gradient of g is     Q3' S ((Q4 dy) * (B d)),
//
// where * multiplies value by value. Qn evaluates a polynomial of n coefficients at the points, ' transposes, B's rows
// are the polynomials that vanish at all points but one, and S divides by their values at that point. In two dimensions
// each matrix is applied to the columns of a square and then to its rows.
//
// The points are 0, 5/8, -5/8, 3/2, -3/2 and infinity. All entries of B and Q are exact in float32, and the rounding
// errors of the results are less than half of those with the common points 0, 1, -1, 2, -2 and infinity (see Barabasz,
// Anderson, Soodhalter and Gregg, "Error Analysis and Improving the Accuracy of Winograd Convolution for Deep Neural
// Networks", 2020, for how the points matter).
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "core/backend/cpu/ops/images/winograd/geometry.h"
#include "core/backend/cpu/simd/narrowing.h"
#include "core/backend/cpu/simd/simd.h"

namespace trainctl::cpu::winograd {

// A vector of `lanes` float32 values.
template <int lanes>
struct VectorOf {
  using Type [[gnu::vector_size(lanes * 4)]] = float;
};

template <class Vector>
TRAINCTL_INLINE inline void load(const float* from, Vector& to) {
  std::memcpy(&to, from, sizeof to);
}
template <class Vector>
TRAINCTL_INLINE inline void store(const Vector& from, float* to) {
  std::memcpy(to, &from, sizeof from);
}

// The bits of bfloat16 and of float32 values, as many as a vector has.
template <class Vector>
struct BitsOf {
  using Narrow [[gnu::vector_size(sizeof(Vector) / 2)]] = std::uint16_t;
  using Wide [[gnu::vector_size(sizeof(Vector))]] = std::uint32_t;
};

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpsabi"  // of the built-in functions, which are instructions
template <class Vector>
TRAINCTL_INLINE inline void load(const Bf16* from, Vector& to) {
  using Bits = BitsOf<Vector>;
  typename Bits::Narrow bits;
  std::memcpy(&bits, from, sizeof bits);
#if defined(__x86_64__) && !defined(__clang__)
  if constexpr (sizeof(Vector) == 64) {  // gcc 12 converts halves
    using Wide [[gnu::vector_size(64)]] = std::int32_t;
    using Narrow [[gnu::vector_size(32)]] = std::int16_t;
    to = (Vector)(__builtin_ia32_pmovzxwd512_mask((Narrow)bits, Wide{}, static_cast<__mmask16>(-1)) << 16);
    return;
  }
#endif
  to = (Vector)(__builtin_convertvector(bits, typename Bits::Wide) << 16);
}

// The values rounded to bfloat16, to nearest even, in the upper halves of their bits; NaN stays NaN.
template <class Vector>
TRAINCTL_INLINE inline void round_to_bf16(Vector& values) {
  using Wide = typename BitsOf<Vector>::Wide;
  const auto bits = (Wide)values;
  const Wide rounded = values == values ? bits + 0x7fff + ((bits >> 16) & 1) : bits | 0x400000;
  values = (Vector)(rounded & 0xffff0000);
}

// Writes values as T. Values of bfloat16 are rounded; the processor's instruction, which `rounds` says that it has, may
// make 0 of denormal numbers.
template <bool rounds, class Vector>
TRAINCTL_INLINE inline void store_rounded(const Vector& from, float* to) {
  store(from, to);
}
template <bool rounds, class Vector>
TRAINCTL_INLINE inline void store_rounded(const Vector& from, Bf16* to) {
  using Bits = BitsOf<Vector>;
#if defined(__x86_64__) && !defined(__clang__)
  if constexpr (rounds) {
    const auto rounded = __builtin_ia32_cvtneps2bf16_v16sf(from);
    std::memcpy(to, &rounded, sizeof rounded);
    return;
  }
#endif
  Vector rounded = from;
  round_to_bf16(rounded);
  const auto upper = __builtin_convertvector((typename Bits::Wide)rounded >> 16, typename Bits::Narrow);
  std::memcpy(to, &upper, sizeof upper);
}

// sum += a * b, rounded once on any compiler. `a` is a vector or the same value in all lanes.
template <class Factor, class Vector>
TRAINCTL_INLINE inline void add_product(const Factor& a, const Vector& b, Vector& sum) {
  const Vector factor = a - Vector{};
#if defined(__x86_64__) && !defined(__clang__)
  if constexpr (sizeof(Vector) == 64) {
    sum = __builtin_ia32_vfmaddps512_mask(factor, b, sum, static_cast<__mmask16>(-1), _MM_FROUND_CUR_DIRECTION);
  } else {
    sum = __builtin_ia32_vfmaddps256(factor, b, sum);
  }
#else
  for (std::size_t lane = 0; lane < sizeof(Vector) / sizeof(float); ++lane) {
    sum[lane] = __builtin_fmaf(factor[lane], b[lane], sum[lane]);
  }
#endif
}
#pragma GCC diagnostic pop

// even + factor * odd and even - factor * odd.
template <class Vector>
TRAINCTL_INLINE inline void add_and_subtract(const Vector& even, float factor, const Vector& odd, Vector& sum,
                                             Vector& difference) {
  sum = difference = even;
  add_product(factor, odd, sum);
  add_product(-factor, odd, difference);
}

// The number of values of a vector, and whether the processor has an instruction that rounds them to bfloat16.
template <int lanes, bool rounds_to_bf16>
struct Lanes {
  static constexpr bool rounds = rounds_to_bf16;
  constexpr int operator()() const { return lanes; }
};

#if defined(__x86_64__)
template <class Body>
[[gnu::target("avx512f,avx512bw,avx512dq,avx512vl,avx512cd,avx512bf16,bmi2,fma,f16c,prefer-vector-width=512"),
  gnu::noinline]] void
run_avx512_bf16(const Body& body) {
  body();
}
#endif

// Calls body(Lanes{}) compiled for this processor, which must not be a baseline one, and for results of T. The body
// must be inlinable (TRAINCTL_INLINE).
template <class T, class Body>
void with_lanes(const Body& body) {
#if defined(__x86_64__)
  constexpr auto only = only_instruction_set;
  if constexpr (only != InstructionSet::avx2) {
    if constexpr (std::is_same_v<T, Bf16>) {
      if (narrows_by_instruction()) {
        return run_avx512_bf16([&]() TRAINCTL_INLINE { body(Lanes<16, true>{}); });
      }
    }
    if (instruction_set() == InstructionSet::avx512) {
      return run_avx512([&]() TRAINCTL_INLINE { body(Lanes<16, false>{}); });
    }
  }
  if constexpr (only != InstructionSet::avx512) {
    run_avx2([&]() TRAINCTL_INLINE { body(Lanes<8, false>{}); });
  }
#else
  body(Lanes<8, false>{});
#endif
}

inline constexpr float near = 5.0f / 8, far = 3.0f / 2;
inline constexpr float near2 = near * near, far2 = far * far, near2_far2 = near2 * far2, squares = near2 + far2,
                       near3 = near2 * near, far3 = far2 * far;
// The entries of S for 0, +-near and +-far; that for infinity is 1.
inline constexpr double scale_0 = 1.0 / near2_far2, scale_near = 0.5 / (near2 * (double{near2} - far2)),
                        scale_far = 0.5 / (far2 * (double{far2} - near2));

// Each transform is in two halves, so that the values of a square stay in registers: 3 of the 6 points, or 2 of the 4
// outputs.
enum class Half { first, second };

// B: the points 0, near, -near, or far, -far, infinity.
template <Half half, class Vector>
TRAINCTL_INLINE inline void transform_input(const Vector (&d)[6], Vector (&v)[3]) {
  if constexpr (half == Half::first) {
    Vector even = d[4], odd = d[3];
    add_product(-far2, d[2], even);
    add_product(-far2, d[1], odd);
    v[0] = d[4];
    add_product(-squares, d[2], v[0]);
    add_product(near2_far2, d[0], v[0]);
    add_and_subtract(even, near, odd, v[1], v[2]);
  } else {
    Vector even = d[4], odd = d[3];
    add_product(-near2, d[2], even);
    add_product(-near2, d[1], odd);
    add_and_subtract(even, far, odd, v[0], v[1]);
    v[2] = d[5];
    add_product(-squares, d[3], v[2]);
    add_product(near2_far2, d[1], v[2]);
  }
}

// Q4, for gradients of the output.
template <Half half, class Vector>
TRAINCTL_INLINE inline void transform_gradient(const Vector (&y)[4], Vector (&v)[3]) {
  if constexpr (half == Half::first) {
    Vector even = y[0], odd = y[1];
    add_product(near2, y[2], even);
    add_product(near2, y[3], odd);
    v[0] = y[0];
    add_and_subtract(even, near, odd, v[1], v[2]);
  } else {
    Vector even = y[0], odd = y[1];
    add_product(far2, y[2], even);
    add_product(far2, y[3], odd);
    add_and_subtract(even, far, odd, v[0], v[1]);
    v[2] = y[3];
  }
}

// Q4 transposed: the outputs 0 and 2, or 1 and 3.
template <Half half, class Vector>
TRAINCTL_INLINE inline void transform_output(const Vector (&m)[6], Vector (&y)[2]) {
  if constexpr (half == Half::first) {
    const Vector at_near = m[1] + m[2], at_far = m[3] + m[4];
    y[0] = m[0] + (at_near + at_far);
    y[1] = near2 * at_near;
    add_product(far2, at_far, y[1]);
  } else {
    const Vector at_near = m[1] - m[2], at_far = m[3] - m[4];
    y[0] = near * at_near;
    add_product(far, at_far, y[0]);
    y[1] = near3 * at_near;
    add_product(far3, at_far, y[1]);
    y[1] += m[5];
  }
}

// S Q3, for kernels.
template <class Vector>
TRAINCTL_INLINE inline void transform_kernel(const Vector (&g)[3], Vector (&u)[6]) {
  constexpr auto zero_0 = static_cast<float>(scale_0), near_0 = static_cast<float>(scale_near),
                 far_0 = static_cast<float>(scale_far);
  constexpr auto near_1 = static_cast<float>(scale_near * near), near_2 = static_cast<float>(scale_near * near2);
  constexpr auto far_1 = static_cast<float>(scale_far * far), far_2 = static_cast<float>(scale_far * far2);
  Vector even_near = near_0 * g[0], even_far = far_0 * g[0];
  add_product(near_2, g[2], even_near);
  add_product(far_2, g[2], even_far);
  u[0] = zero_0 * g[0];
  add_and_subtract(even_near, near_1, g[1], u[1], u[2]);
  add_and_subtract(even_far, far_1, g[1], u[3], u[4]);
  u[5] = g[2];
}

// Q3 transposed times S, for gradients of kernels.
template <class Vector>
TRAINCTL_INLINE inline void transform_kernel_gradient(const Vector (&u)[6], Vector (&g)[3]) {
  constexpr auto zero_0 = static_cast<float>(scale_0), near_0 = static_cast<float>(scale_near),
                 far_0 = static_cast<float>(scale_far);
  constexpr auto near_1 = static_cast<float>(scale_near * near), near_2 = static_cast<float>(scale_near * near2);
  constexpr auto far_1 = static_cast<float>(scale_far * far), far_2 = static_cast<float>(scale_far * far2);
  const Vector at_near = u[1] + u[2], at_far = u[3] + u[4];
  const Vector by_near = u[1] - u[2], by_far = u[3] - u[4];
  g[0] = near_0 * at_near;
  add_product(far_0, at_far, g[0]);
  add_product(zero_0, u[0], g[0]);
  g[1] = near_1 * by_near;
  add_product(far_1, by_far, g[1]);
  g[2] = near_2 * at_near;
  add_product(far_2, at_far, g[2]);
  g[2] += u[5];
}

}  // namespace trainctl::cpu::winograd
