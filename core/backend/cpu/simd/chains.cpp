// The tables of the functions of chains.
#include "core/backend/cpu/simd/chains.h"

#include <algorithm>
#include <utility>

#include "core/backend/cpu/simd/function_blocks.h"

namespace trainctl::cpu {
namespace {

constexpr int chain_steps = static_cast<int>(ChainStep::none) + 1;
constexpr int chain_count = chain_steps * chain_steps * chain_steps * chain_steps;
static_assert(most_chain_steps == 4);

// One step of a chain.
template <ChainStep step>
TRAINCTL_INLINE inline float linked(float value, float operand) {
  if constexpr (step == ChainStep::add) return value + operand;
  if constexpr (step == ChainStep::subtract) return value - operand;
  if constexpr (step == ChainStep::multiply) return value * operand;
  if constexpr (step == ChainStep::subtract_from) return operand - value;
  if constexpr (step == ChainStep::square) return value * value;
  return value;
}

constexpr int number_of(const ChainSteps& steps) {
  int number = 0;
  for (std::size_t k = most_chain_steps; k-- > 0;) number = number * chain_steps + static_cast<int>(steps[k]);
  return number;
}
constexpr ChainSteps steps_of(int number) {
  ChainSteps steps{};
  for (ChainStep& step : steps) {
    step = static_cast<ChainStep>(number % chain_steps);
    number /= chain_steps;
  }
  return steps;
}

constexpr std::size_t length_of(const ChainSteps& steps) {
  std::size_t length = 0;
  while (length < most_chain_steps && steps[length] != ChainStep::none) ++length;
  return length;
}
constexpr bool is_chain(const ChainSteps& steps) {
  const std::size_t length = length_of(steps);
  for (std::size_t k = 0; k < most_chain_steps; ++k) {
    if (k < length ? !may_be_at(steps[k], k) : steps[k] != ChainStep::none) return false;
  }
  return length > 0;
}

// Value i of chain `number`.
template <int number>
TRAINCTL_INLINE inline float chain_value(const auto& x, int i) {
  constexpr ChainSteps steps = steps_of(number);
  constexpr std::size_t used = length_of(steps) + 1;
  const float first = linked<steps[0]>(x[0][i], x[1][i]);
  const float second = linked<steps[1]>(first, x[place<used, 2>][i]);
  return linked<steps[3]>(linked<steps[2]>(second, x[place<used, 3>][i]), x[place<used, 4>][i]);
}

template <int number>
void run_chain(const BlockOperand* operands, float* y, std::int64_t count) {
  simd([=]() TRAINCTL_INLINE {
    float* to = y;
    each_value<length_of(steps_of(number)) + 1>(
        operands, count, [&](std::int64_t i) TRAINCTL_INLINE { to = y + i; },
        [&](const auto& x, int i) TRAINCTL_INLINE { to[i] = chain_value<number>(x, i); });
  });
}

template <int number>
void run_chain_and_sum(const BlockOperand* operands, float* y, std::int64_t y_mask, std::int64_t count, float* sums) {
  simd([=]() TRAINCTL_INLINE {
    float added[constant_values];
#pragma omp simd
    for (int i = 0; i < constant_values; ++i) added[i] = sums[i];
    float* to = y;
    each_value<length_of(steps_of(number)) + 1>(
        operands, count, [&](std::int64_t i) TRAINCTL_INLINE { to = y + (i & y_mask); },
        [&](const auto& x, int i) TRAINCTL_INLINE {
          const float value = chain_value<number>(x, i);
          to[i] = value;
          added[i] += value;
        });
#pragma omp simd
    for (int i = 0; i < constant_values; ++i) sums[i] = added[i];
  });
}

template <int number>
constexpr BlockFunction chain() {
  if constexpr (is_chain(steps_of(number))) {
    return &run_chain<number>;
  } else {
    return nullptr;
  }
}
template <int number>
constexpr ChainSumFunction chain_and_sum() {
  if constexpr (is_chain(steps_of(number))) {
    return &run_chain_and_sum<number>;
  } else {
    return nullptr;
  }
}

template <std::size_t... numbers>
constexpr auto chain_table(std::index_sequence<numbers...>) {
  return std::array<BlockFunction, sizeof...(numbers)>{chain<static_cast<int>(numbers)>()...};
}
template <std::size_t... numbers>
constexpr auto chain_sum_table(std::index_sequence<numbers...>) {
  return std::array<ChainSumFunction, sizeof...(numbers)>{chain_and_sum<static_cast<int>(numbers)>()...};
}

}  // namespace

BlockFunction chain_function(const ChainSteps& steps) {
  static constexpr auto functions = chain_table(std::make_index_sequence<chain_count>());
  return functions[static_cast<std::size_t>(number_of(steps))];
}

ChainSumFunction chain_sum_function(const ChainSteps& steps) {
  static constexpr auto functions = chain_sum_table(std::make_index_sequence<chain_count>());
  return functions[static_cast<std::size_t>(number_of(steps))];
}

void run_chain_sum(ChainSumFunction with_sum, BlockFunction function, const BlockOperand* operands, int operand_count,
                   float* y, std::int64_t y_mask, std::int64_t count, float* sums) {
  const std::int64_t rest = count % constant_values, whole = count - rest;
  if (whole > 0) with_sum(operands, y, y_mask, whole, sums);
  if (rest == 0) return;
  const PaddedOperands padded(operands, operand_count, whole, rest);
  float last[constant_values];
  function(padded.operands, last, constant_values);
  for (std::int64_t i = 0; i < rest; ++i) sums[i] += last[i];
  if (y_mask != 0) std::copy_n(last, rest, y + whole);
}

}  // namespace trainctl::cpu
