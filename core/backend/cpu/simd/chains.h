// Chains: up to four cheap functions over a block of values as one function, whose values may be added up meanwhile.
#pragma once

#include <array>
#include <cstdint>

#include "core/backend/cpu/simd/scalar_functions.h"

namespace trainctl::cpu {

// A step from a value v and an operand b: v + b, v * b, v - b, b - v, v * v (without b), or v itself.
enum class ChainStep { add, multiply, subtract, subtract_from, square, none };
inline constexpr std::size_t most_chain_steps = most_operands - 1;
using ChainSteps = std::array<ChainStep, most_chain_steps>;  // steps after the last one are `none`

// Whether a chain may have the step at a place: the later places have only the frequent steps, so that there are not
// too many functions.
constexpr bool may_be_at(ChainStep step, std::size_t place) { return place < 2 || step <= ChainStep::multiply; }

// The function that begins with the first operand, and in each step takes the next one; a square has an operand, too,
// which it does not read.
BlockFunction chain_function(const ChainSteps& steps);

// Computes a chain like a BlockFunction, and adds value i to sums[i % constant_values]. Value i is written to
// y[i & y_mask]: the mask is 0 if the values are not needed, and y then has `constant_values` values.
using ChainSumFunction = void (*)(const BlockOperand* operands, float* y, std::int64_t y_mask, std::int64_t count,
                                  float* sums);
ChainSumFunction chain_sum_function(const ChainSteps& steps);

// The same for any count. `function` is the chain without the sum.
void run_chain_sum(ChainSumFunction with_sum, BlockFunction function, const BlockOperand* operands, int operand_count,
                   float* y, std::int64_t y_mask, std::int64_t count, float* sums);

}  // namespace trainctl::cpu
