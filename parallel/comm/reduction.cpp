// Reduces block by block: a block's running values stay in the first-level cache, memory is read and written once.
#include "parallel/comm/reduction.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace trainctl {

namespace {

#define TRAINCTL_INLINE inline __attribute__((always_inline))

using Pointers = std::span<std::byte* const>;

// Elements as they lie in memory, and the type they are accumulated in.
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
  static TRAINCTL_INLINE Stored store(Sum value) {  // to the nearest, ties to even; NaN stays NaN
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16;
    const std::uint32_t nan = (bits >> 16) | 0x40;
    return static_cast<Stored>((bits & 0x7FFFFFFF) > 0x7F800000 ? nan : rounded);
  }
};

struct Float16 {
  using Stored = _Float16;
  using Sum = float;
  static TRAINCTL_INLINE Sum load(Stored value) { return static_cast<float>(value); }
  static TRAINCTL_INLINE Stored store(Sum value) { return static_cast<Stored>(value); }
};

template <Reduction reduction, class T>
TRAINCTL_INLINE T combine(T a, T b) {
  if constexpr (reduction == Reduction::sum) return static_cast<T>(a + b);
  // A NaN on either side stays visible.
  if constexpr (reduction == Reduction::minimum) return a != a || a < b ? a : b;
  if constexpr (reduction == Reduction::maximum) return a != a || a > b ? a : b;
}

template <class Element, Reduction reduction>
TRAINCTL_INLINE void reduce_blocks(Pointers sources, Pointers destinations, std::int64_t count) {
  using Stored = typename Element::Stored;
  using Sum = typename Element::Sum;
  constexpr std::int64_t block = 4096 / sizeof(Sum);
  alignas(64) Sum sums[block];
  alignas(64) Stored stored[block];
  for (std::int64_t first = 0; first < count; first += block) {
    const std::int64_t length = std::min(block, count - first);
    const auto* source = reinterpret_cast<const Stored*>(sources[0]) + first;
    for (std::int64_t i = 0; i < length; ++i) sums[i] = Element::load(source[i]);
    for (std::size_t s = 1; s < sources.size(); ++s) {
      source = reinterpret_cast<const Stored*>(sources[s]) + first;
      for (std::int64_t i = 0; i < length; ++i) sums[i] = combine<reduction>(sums[i], Element::load(source[i]));
    }
    for (std::int64_t i = 0; i < length; ++i) stored[i] = Element::store(sums[i]);
    for (std::byte* destination : destinations) {
      std::memcpy(reinterpret_cast<Stored*>(destination) + first, stored,
                  static_cast<std::size_t>(length) * sizeof(Stored));
    }
  }
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
