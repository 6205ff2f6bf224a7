// The loops of functions over blocks of values, `constant_values` values at a time.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

#include "core/backend/cpu/simd/scalar_functions.h"

namespace trainctl::cpu {

// Calls function(x, i) for the values i of each group of `constant_values` values, where x[k] are the addresses of the
// operands' values, and begin(x, group) before each group. `count` is a multiple of `constant_values`.
template <std::size_t operands, class Begin, class Function>
TRAINCTL_INLINE inline void each_value(const BlockOperand* of, std::int64_t count, const Begin& begin,
                                       const Function& function) {
  std::array<const float*, operands> x;
  for (std::int64_t i = 0; i < count; i += constant_values) {
    for (std::size_t k = 0; k < operands; ++k) x[k] = of[k].values + (i & of[k].mask);
    begin(i);
#pragma omp simd
    for (int lane = 0; lane < constant_values; ++lane) function(x, lane);
  }
}

// The index of operand `number` if a function has `count` operands; 0 if it has fewer than number + 1.
template <std::size_t count, std::size_t number>
constexpr std::size_t place = number < count ? number : 0;

// `rest` values of operands, padded with zeros to `constant_values`.
struct PaddedOperands {
  float values[most_operands][constant_values] = {};
  BlockOperand operands[most_operands];

  PaddedOperands(const BlockOperand* of, int count, std::int64_t first, std::int64_t rest) {
    for (int k = 0; k < count; ++k) {
      std::copy_n(of[k].values + (first & of[k].mask), of[k].mask == 0 ? constant_values : rest, values[k]);
      operands[k] = {values[k], -1};
    }
  }
};

}  // namespace trainctl::cpu
