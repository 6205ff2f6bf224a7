// Programs of elementwise functions: what one kernel computes for each element of its broadcast inputs.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace trainctl {

// The functions of one element. Comparisons and logical functions return 0 or 1; all values but 0 are true.
enum class ScalarFunction {
  input,     // number `index` of the inputs
  constant,  // `value`
  // of one operand
  negative,
  abs,
  sign,
  exp,
  expm1,
  log,
  log1p,
  sqrt,
  rsqrt,
  reciprocal,
  sin,
  cos,
  tan,
  arctan,
  tanh,
  sigmoid,
  softplus,
  erf,
  floor,
  ceil,
  round,  // to the nearest even number in the middle
  logical_not,
  isnan,
  isfinite,
  stop_gradient,  // the operand, with gradient 0
  // of two operands
  add,
  subtract,
  multiply,
  divide,
  power,
  maximum,  // NaN if one of the operands is
  minimum,
  mod,  // with the sign of the divisor, as in Python
  floor_divide,
  less,
  less_equal,
  equal,
  not_equal,
  logical_and,
  logical_or,
  logical_xor,
  // of three operands
  where  // the second operand where the first one is true, otherwise the third
};

// The number of operands.
constexpr int operands_of(ScalarFunction function) {
  if (function < ScalarFunction::negative) return 0;
  if (function < ScalarFunction::add) return 1;
  return function < ScalarFunction::where ? 2 : 3;
}
// The name in keras.ops.
std::string_view name_of(ScalarFunction function);
// The function of a name; no value for other names, and for "input" and "constant".
std::optional<ScalarFunction> scalar_function(std::string_view name);

// A value of a program: a function of earlier values.
struct ScalarStep {
  ScalarFunction function = ScalarFunction::constant;
  std::array<int, 3> operands = {-1, -1, -1};  // numbers of steps; -1 after the last one
  int index = 0;                               // of an input
  double value = 0;                            // of a constant

  auto operator<=>(const ScalarStep&) const = default;
};

// Steps in an order in which operands come first, and the numbers of the steps whose values are the results.
struct ElementwiseProgram {
  std::vector<ScalarStep> steps;
  std::vector<int> results;
  int inputs = 0;

  bool operator==(const ElementwiseProgram&) const = default;
};

// Returns text such as "i0 sigmoid(0) multiply(0,1) -> 2": the steps by their numbers, and the results.
std::string to_string(const ElementwiseProgram& program);
// Numbers the inputs that the program reads from 0 without gaps; returns their old numbers.
std::vector<int> compact_inputs(ElementwiseProgram& program);
// The results in float64 for the values of the inputs.
std::vector<double> evaluate(const ElementwiseProgram& program, std::span<const double> inputs);

}  // namespace trainctl
