// Reverses the order of the dimensions of a tensor of three dimensions: the kernels of other programs have their
// outputs first, those of trainctl have them last.
#pragma once

#include <algorithm>
#include <cstdint>

namespace trainctl {

// Writes `from` [outputs, inputs, positions] to `to` as [positions, inputs, outputs]. The two must not overlap.
inline void reverse_axes(std::int64_t outputs, std::int64_t inputs, std::int64_t positions, const float* from,
                         float* to) {
  constexpr std::int64_t block = 16;  // number of outputs in one pass, so that whole cache lines are written
  for (std::int64_t first = 0; first < outputs; first += block) {
    const std::int64_t end = std::min(outputs, first + block);
    for (std::int64_t i = 0; i < inputs; ++i) {
      for (std::int64_t p = 0; p < positions; ++p) {
        for (std::int64_t o = first; o < end; ++o) {
          to[(p * inputs + i) * outputs + o] = from[(o * inputs + i) * positions + p];
        }
      }
    }
  }
}

}  // namespace trainctl
