// Reduces block by block, so that the intermediate values of a block stay in registers, and memory is read and written
// once.
#include "parallel/comm/reduction.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace trainctl {

namespace {

#define TRAINCTL_INLINE inline __attribute__((always_inline))

using Pointers = std::span<std::byte* const>;

constexpr std::int64_t block = 128;  // elements

// The element types: how values are stored, and the type in which they are accumulated.
template <class T>
struct Plain {
  using Stored = T;
  using Sum = T;
  static TRAINCTL_INLINE Sum load(Stored value) { return value; }
  static TRAINCTL_INLINE Stored store(Sum value) { return value; }
};

struct BFloat16 {
  using Stored = std::uint16_t;
  using Sum = float;
  static TRAINCTL_INLINE Sum load(Stored value) { return std::bit_cast<float>(std::uint32_t{value} << 16); }
  static TRAINCTL_INLINE Stored store(Sum value) {  // rounds to nearest, ties to even; NaN stays NaN
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16;
    const std::uint32_t nan = (bits >> 16) | 0x40;
    return static_cast<Stored>((bits & 0x7FFFFFFF) > 0x7F800000 ? nan : rounded);
  }
};

// IEEE half precision, converted by integer arithmetic, since not every supported compiler has the type.
struct Float16 {
  using Stored = std::uint16_t;
  using Sum = float;
  static TRAINCTL_INLINE Sum load(Stored value) {
    const std::uint32_t magnitude = value & 0x7FFFu, sign = std::uint32_t{value & 0x8000u} << 16;
    const float small = static_cast<float>(magnitude) * 0x1p-24f;                     // below the smallest normal half
    const std::uint32_t exponent = magnitude >= 0x7C00u ? 0x70000000u : 0x38000000u;  // Inf and NaN are kept
    const std::uint32_t normal = (magnitude << 13) + exponent;
    return std::bit_cast<float>(sign | (magnitude < 0x0400u ? std::bit_cast<std::uint32_t>(small) : normal));
  }
  static TRAINCTL_INLINE Stored store(Sum value) {  // rounds to nearest, ties to even; NaN stays NaN
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t magnitude = bits & 0x7FFFFFFFu, sign = (bits >> 16) & 0x8000u;
    const std::uint32_t normal = (magnitude - 0x38000000u + 0xFFFu + ((magnitude >> 13) & 1)) >> 13;
    // Adding 1/2 leaves a multiple of the smallest half in the lowest bits, rounded by the addition.
    const std::uint32_t small = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - 0x3F000000u;
    const std::uint32_t large = magnitude > 0x7F800000u ? 0x7E00u : 0x7C00u;
    const std::uint32_t rounded = magnitude >= 0x477FF000u ? large : magnitude < 0x38800000u ? small : normal;
    return static_cast<Stored>(sign | rounded);
  }
};

template <Reduction reduction, class T>
TRAINCTL_INLINE T combine(T a, T b) {
  if constexpr (reduction == Reduction::sum) return static_cast<T>(a + b);
  // The result is NaN if either value is NaN.
  if constexpr (reduction == Reduction::minimum) return a != a || a < b ? a : b;
  if constexpr (reduction == Reduction::maximum) return a != a || a > b ? a : b;
}

// Reduces `length` elements; for a whole block this is a constant, so that the sums stay in registers.
template <class Element, Reduction reduction>
TRAINCTL_INLINE void reduce_block(Pointers sources, Pointers destinations, std::int64_t first, std::int64_t length) {
  using Stored = typename Element::Stored;
  alignas(64) typename Element::Sum sums[block];
  const auto* source = reinterpret_cast<const Stored*>(sources[0]) + first;
  for (std::int64_t i = 0; i < length; ++i) sums[i] = Element::load(source[i]);
  for (std::size_t s = 1; s < sources.size(); ++s) {
    source = reinterpret_cast<const Stored*>(sources[s]) + first;
    for (std::int64_t i = 0; i < length; ++i) sums[i] = combine<reduction>(sums[i], Element::load(source[i]));
  }
  for (std::byte* to : destinations) {
    auto* destination = reinterpret_cast<Stored*>(to) + first;
    for (std::int64_t i = 0; i < length; ++i) destination[i] = Element::store(sums[i]);
  }
}

template <class Element, Reduction reduction>
TRAINCTL_INLINE void reduce_blocks(Pointers sources, Pointers destinations, std::int64_t count) {
  std::int64_t first = 0;
  for (; first + block <= count; first += block) reduce_block<Element, reduction>(sources, destinations, first, block);
  if (first < count) reduce_block<Element, reduction>(sources, destinations, first, count - first);
}

using Reducer = void (*)(Pointers, Pointers, std::int64_t);

template <class Element, Reduction reduction>
void reduce_baseline(Pointers sources, Pointers destinations, std::int64_t count) {
  reduce_blocks<Element, reduction>(sources, destinations, count);
}

template <class Element, Reduction reduction>
__attribute__((target("avx2,f16c"))) void reduce_avx2(Pointers sources, Pointers destinations, std::int64_t count) {
  reduce_blocks<Element, reduction>(sources, destinations, count);
}

template <class Element, Reduction reduction>
__attribute__((target("avx512f,avx512bw,avx512vl,f16c,prefer-vector-width=512"))) void reduce_avx512(
    Pointers sources, Pointers destinations, std::int64_t count) {
  reduce_blocks<Element, reduction>(sources, destinations, count);
}

template <class Element, Reduction reduction>
Reducer reducer_for_this_processor() {
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl")) {
    return reduce_avx512<Element, reduction>;
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("f16c")) return reduce_avx2<Element, reduction>;
  return reduce_baseline<Element, reduction>;
}

template <class Element>
Reducer reducer_of(Reduction reduction) {
  switch (reduction) {
    case Reduction::minimum:
      return reducer_for_this_processor<Element, Reduction::minimum>();
    case Reduction::maximum:
      return reducer_for_this_processor<Element, Reduction::maximum>();
    case Reduction::sum:
      break;
  }
  return reducer_for_this_processor<Element, Reduction::sum>();
}

Reducer reducer_of(DType dtype, Reduction reduction) {
  switch (dtype) {
    case DType::float64:
      return reducer_of<Plain<double>>(reduction);
    case DType::bfloat16:
      return reducer_of<BFloat16>(reduction);
    case DType::float16:
      return reducer_of<Float16>(reduction);
    case DType::int32:
      return reducer_of<Plain<std::int32_t>>(reduction);
    case DType::int64:
      return reducer_of<Plain<std::int64_t>>(reduction);
    case DType::uint8:
      return reducer_of<Plain<std::uint8_t>>(reduction);
    case DType::float32:
      break;
  }
  return reducer_of<Plain<float>>(reduction);
}

}  // namespace

void reduce(Pointers sources, Pointers destinations, DType dtype, std::int64_t count, Reduction reduction) {
  if (count > 0) reducer_of(dtype, reduction)(sources, destinations, count);
}

}  // namespace trainctl
