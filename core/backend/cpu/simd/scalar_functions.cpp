// The table of the functions of elementwise programs over blocks of values.
#include "core/backend/cpu/simd/scalar_functions.h"

#include <array>
#include <utility>

namespace trainctl::cpu {
namespace {

template <ScalarFunction function>
void apply(const float* a, const float* b, const float* c, float* y, std::int64_t count) {
  constexpr int operands = operands_of(function);
  simd([=]() TRAINCTL_INLINE {
#pragma omp simd
    for (std::int64_t i = 0; i < count; ++i) {
      y[i] = value_of<function>(a[i], operands > 1 ? b[i] : 0.0f, operands > 2 ? c[i] : 0.0f);
    }
  });
}

template <std::size_t... numbers>
constexpr auto table(std::index_sequence<numbers...>) {
  return std::array<BlockFunction, sizeof...(numbers)>{&apply<static_cast<ScalarFunction>(numbers)>...};
}

}  // namespace

BlockFunction block_function(ScalarFunction function) {
  static constexpr auto functions =
      table(std::make_index_sequence<static_cast<std::size_t>(ScalarFunction::where) + 1>());
  return functions[static_cast<std::size_t>(function)];
}

}  // namespace trainctl::cpu
