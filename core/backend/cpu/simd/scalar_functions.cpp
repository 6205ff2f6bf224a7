// The table of the functions of elementwise programs over blocks of values.
#include "core/backend/cpu/simd/scalar_functions.h"

#include <algorithm>
#include <array>
#include <utility>

#include "core/backend/cpu/simd/function_blocks.h"

namespace trainctl::cpu {
namespace {

template <ScalarFunction function>
constexpr std::size_t operand_count = std::max(1, operands_of(function));

template <ScalarFunction function>
void apply(const BlockOperand* operands, float* y, std::int64_t count) {
  simd([=]() TRAINCTL_INLINE {
    constexpr std::size_t used = operand_count<function>;
    float* to = y;
    each_value<used>(
        operands, count, [&](std::int64_t i) TRAINCTL_INLINE { to = y + i; },
        [&](const auto& x, int i)
            TRAINCTL_INLINE { to[i] = value_of<function>(x[0][i], x[place<used, 1>][i], x[place<used, 2>][i]); });
  });
}

template <std::size_t... numbers>
constexpr auto function_table(std::index_sequence<numbers...>) {
  return std::array<BlockFunction, sizeof...(numbers)>{&apply<static_cast<ScalarFunction>(numbers)>...};
}

// Computes `count` values, a multiple of `constant_values`.
void erf_and_gauss_of_groups(const BlockOperand& operand, float* erf, float* gauss, std::int64_t count) {
  simd([=, &operand]() TRAINCTL_INLINE {
    float *to_erf = erf, *to_gauss = gauss;
    each_value<1>(
        &operand, count, [&](std::int64_t i) TRAINCTL_INLINE { to_erf = erf + i, to_gauss = gauss + i; },
        [&](const auto& x, int i) TRAINCTL_INLINE {
          const float value = x[0][i];
          const ErfAndGauss of = erf_and_gauss(value);
          to_erf[i] = of.erf;
          to_gauss[i] = value * value > 87.0f ? 0.0f : of.gauss;
        });
  });
}

}  // namespace

BlockFunction block_function(ScalarFunction function) {
  static constexpr auto functions =
      function_table(std::make_index_sequence<static_cast<std::size_t>(ScalarFunction::where) + 1>());
  return functions[static_cast<std::size_t>(function)];
}

void run_function(BlockFunction function, const BlockOperand* operands, int operand_count, float* y,
                  std::int64_t count) {
  const std::int64_t rest = count % constant_values, whole = count - rest;
  if (whole > 0) function(operands, y, whole);
  if (rest == 0) return;
  const PaddedOperands padded(operands, operand_count, whole, rest);
  float last[constant_values];
  function(padded.operands, last, constant_values);
  std::copy_n(last, rest, y + whole);
}

void erf_and_gauss(const BlockOperand& operand, float* erf, float* gauss, std::int64_t count) {
  const std::int64_t rest = count % constant_values, whole = count - rest;
  const PaddedOperands padded(&operand, 1, whole, rest);
  erf_and_gauss_of_groups(operand, erf, gauss, whole);
  if (rest == 0) return;
  float last[2][constant_values];
  erf_and_gauss_of_groups(padded.operands[0], last[0], last[1], constant_values);
  std::copy_n(last[0], rest, erf + whole);
  std::copy_n(last[1], rest, gauss + whole);
}

}  // namespace trainctl::cpu
