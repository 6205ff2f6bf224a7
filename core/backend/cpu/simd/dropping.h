// Drops elements of a sample by the mask of Dropout (core/graph/ops/elementwise/dropout.h).
#pragma once

#include <algorithm>
#include <cmath>

#include "core/backend/cpu/simd/philox.h"
#include "core/backend/cpu/simd/simd.h"

namespace trainctl::cpu {

// y = x / (1 - rate) where uniform01(word) >= rate, else 0. `least` is least_kept(rate).
template <class T>
TRAINCTL_INLINE inline void drop(const std::uint32_t* drawn, std::int32_t least, float scale, const T* x, T* y,
                                 std::int64_t n) {
#pragma omp simd
  for (std::int64_t i = 0; i < n; ++i) {
    const float value = load(x[i]) * scale;
    y[i] = store<T>(static_cast<std::int32_t>(drawn[i] >> 8) >= least ? value : 0.0f);
  }
}

// The smallest upper 24 bits of a word that keep an element: uniform01() is their number divided by 2^24.
inline std::int32_t least_kept(float rate) {
  return static_cast<std::int32_t>(std::ceil(static_cast<double>(rate) * 0x1p24));
}

// Drops elements [first, first + count) of a sample.
template <class T>
void drop_elements(const RandomKey& key, std::uint64_t sample, float rate, const T* x, T* y, std::int64_t first,
                   std::int64_t count) {
  simd([=]() TRAINCTL_INLINE {
    const float scale = 1.0f / (1.0f - rate);
    const std::int32_t least = least_kept(rate);
    const std::int64_t last = first + count;
    std::uint32_t drawn[drawn_words];
    for (std::int64_t start = first - first % 4; start < last; start += drawn_words) {
      draw_words(key, sample, static_cast<std::uint32_t>(start / 4), drawn);
      if (start >= first && start + drawn_words <= last) {
        drop(drawn, least, scale, x + (start - first), y + (start - first), drawn_words);
      } else {
        const std::int64_t begin = std::max(start, first), end = std::min(start + drawn_words, last);
        drop(drawn + (begin - start), least, scale, x + (begin - first), y + (begin - first), end - begin);
      }
    }
  });
}

}  // namespace trainctl::cpu
