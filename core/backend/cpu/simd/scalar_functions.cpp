// The tables of the functions of elementwise programs over blocks of values, and of chains of them.
#include "core/backend/cpu/simd/scalar_functions.h"

#include <algorithm>
#include <array>
#include <utility>

namespace trainctl::cpu {
namespace {

// Computes `constant_values` values at a time: y[0][i], y[1][i], ... = function(x[0][i], x[1][i], ...) by
// function(x, y, i).
template <std::size_t operands, std::size_t results, class Function>
TRAINCTL_INLINE inline void each_value(const BlockOperand* of, const std::array<float*, results>& y, std::int64_t count,
                                       const Function& function) {
  std::array<const float*, operands> x;
  std::array<float*, results> to = y;
  std::int64_t i = 0;
  for (; i + constant_values <= count; i += constant_values) {
    for (std::size_t k = 0; k < operands; ++k) x[k] = of[k].values + (i & of[k].mask);
    for (std::size_t k = 0; k < results; ++k) to[k] = y[k] + i;
#pragma omp simd
    for (int lane = 0; lane < constant_values; ++lane) function(x, to, lane);
  }
  if (i == count) return;
  float last_x[operands][constant_values] = {}, last_y[results][constant_values];
  for (std::size_t k = 0; k < operands; ++k) {
    std::copy_n(of[k].values + (i & of[k].mask), of[k].mask == 0 ? constant_values : count - i, last_x[k]);
    x[k] = last_x[k];
  }
  for (std::size_t k = 0; k < results; ++k) to[k] = last_y[k];
#pragma omp simd
  for (int lane = 0; lane < constant_values; ++lane) function(x, to, lane);
  for (std::size_t k = 0; k < results; ++k) std::copy_n(last_y[k], count - i, y[k] + i);
}

// The index of operand `number` if a function has `count` operands; 0 if it has fewer than number + 1.
template <std::size_t count, std::size_t number>
constexpr std::size_t place = number < count ? number : 0;

template <ScalarFunction function>
constexpr std::size_t operand_count = std::max(1, operands_of(function));

template <ScalarFunction function>
void apply(const BlockOperand* operands, float* y, std::int64_t count) {
  simd([=]() TRAINCTL_INLINE {
    each_value<operand_count<function>>(
        operands, std::array{y}, count, [](const auto& x, const auto& to, int i) TRAINCTL_INLINE {
          constexpr std::size_t used = operand_count<function>;
          to[0][i] = value_of<function>(x[0][i], x[place<used, 1>][i], x[place<used, 2>][i]);
        });
  });
}

template <std::size_t... numbers>
constexpr auto function_table(std::index_sequence<numbers...>) {
  return std::array<BlockFunction, sizeof...(numbers)>{&apply<static_cast<ScalarFunction>(numbers)>...};
}

// One step of a chain.
template <int step>
TRAINCTL_INLINE inline float linked(float value, float operand) {
  if constexpr (step == static_cast<int>(ChainStep::add)) return value + operand;
  if constexpr (step == static_cast<int>(ChainStep::subtract)) return value - operand;
  if constexpr (step == static_cast<int>(ChainStep::subtract_from)) return operand - value;
  if constexpr (step == static_cast<int>(ChainStep::multiply)) return value * operand;
  if constexpr (step == static_cast<int>(ChainStep::square)) return value * value;
  return value;
}

constexpr int chain_steps = static_cast<int>(ChainStep::none) + 1;

// The step of chain `number` at a place.
template <int number, int place>
constexpr int step_of = number /
                        (place == 0   ? 1
                         : place == 1 ? chain_steps
                                      : chain_steps * chain_steps) %
                        chain_steps;
// Whether no step of chain `number` follows `none`.
template <int number>
constexpr bool is_chain = step_of<number, 0> != static_cast<int>(ChainStep::none) &&
                          (step_of<number, 1> != static_cast<int>(ChainStep::none) ||
                           step_of<number, 2> == static_cast<int>(ChainStep::none));
// The number of operands of chain `number`, counting that of a square.
template <int number>
constexpr std::size_t chain_operands = step_of<number, 2> != static_cast<int>(ChainStep::none)   ? 4
                                       : step_of<number, 1> != static_cast<int>(ChainStep::none) ? 3
                                                                                                 : 2;

template <int number>
void run_chain(const BlockOperand* operands, float* y, std::int64_t count) {
  simd([=]() TRAINCTL_INLINE {
    each_value<chain_operands<number>>(
        operands, std::array{y}, count, [](const auto& x, const auto& to, int i) TRAINCTL_INLINE {
          constexpr std::size_t used = chain_operands<number>;
          const float first = linked<step_of<number, 0>>(x[0][i], x[1][i]);
          to[0][i] =
              linked<step_of<number, 2>>(linked<step_of<number, 1>>(first, x[place<used, 2>][i]), x[place<used, 3>][i]);
        });
  });
}

template <int number>
constexpr BlockFunction chain() {
  if constexpr (is_chain<number>) {
    return &run_chain<number>;
  } else {
    return nullptr;
  }
}

template <std::size_t... numbers>
constexpr auto chain_table(std::index_sequence<numbers...>) {
  return std::array<BlockFunction, sizeof...(numbers)>{chain<static_cast<int>(numbers)>()...};
}

}  // namespace

BlockFunction block_function(ScalarFunction function) {
  static constexpr auto functions =
      function_table(std::make_index_sequence<static_cast<std::size_t>(ScalarFunction::where) + 1>());
  return functions[static_cast<std::size_t>(function)];
}

BlockFunction chain_function(const std::array<ChainStep, most_chain_steps>& steps) {
  static constexpr auto functions =
      chain_table(std::make_index_sequence<std::size_t{chain_steps} * chain_steps * chain_steps>());
  return functions[static_cast<std::size_t>(
      static_cast<int>(steps[0]) +
      chain_steps * (static_cast<int>(steps[1]) + chain_steps * static_cast<int>(steps[2])))];
}

void erf_and_gauss(const BlockOperand& operand, float* erf, float* gauss, std::int64_t count) {
  simd([=, &operand]() TRAINCTL_INLINE {
    each_value<1>(&operand, std::array{erf, gauss}, count, [](const auto& x, const auto& to, int i) TRAINCTL_INLINE {
      const float value = x[0][i];
      const ErfAndGauss of = erf_and_gauss(value);
      to[0][i] = of.erf;
      to[1][i] = value * value > 87.0f ? 0.0f : of.gauss;
    });
  });
}

}  // namespace trainctl::cpu
