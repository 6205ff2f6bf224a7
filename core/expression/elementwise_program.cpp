// Names, prints and evaluates programs of elementwise functions.
#include "core/expression/elementwise_program.h"

#include "core/base/format.h"
#include "core/expression/scalar_value.h"

namespace trainctl {
namespace {

// In the order of ScalarFunction.
constexpr std::string_view names[] = {
    "input",       "constant",   "negative",      "abs",          "sign",     "exp",        "expm1",  "log",
    "log1p",       "sqrt",       "rsqrt",         "reciprocal",   "sin",      "cos",        "tan",    "arctan",
    "tanh",        "sigmoid",    "softplus",      "erf",          "floor",    "ceil",       "round",  "logical_not",
    "isnan",       "isfinite",   "stop_gradient", "add",          "subtract", "multiply",   "divide", "power",
    "maximum",     "minimum",    "mod",           "floor_divide", "less",     "less_equal", "equal",  "not_equal",
    "logical_and", "logical_or", "logical_xor",   "where"};

}  // namespace

std::string_view name_of(ScalarFunction function) { return names[static_cast<std::size_t>(function)]; }

std::optional<ScalarFunction> scalar_function(std::string_view name) {
  constexpr auto first = static_cast<std::size_t>(ScalarFunction::negative);
  for (std::size_t i = first; i < std::size(names); ++i) {
    if (names[i] == name) return static_cast<ScalarFunction>(i);
  }
  return std::nullopt;
}

std::string to_string(const ElementwiseProgram& program) {
  std::string text;
  for (const ScalarStep& step : program.steps) {
    if (step.function == ScalarFunction::input) {
      text += format("i{} ", step.index);
    } else if (step.function == ScalarFunction::constant) {
      text += format("{} ", step.value);
    } else {
      text += format("{}(", name_of(step.function));
      for (int k = 0; k < operands_of(step.function); ++k) {
        text += format("{}{}", k > 0 ? "," : "", step.operands[static_cast<std::size_t>(k)]);
      }
      text += ") ";
    }
  }
  text += "->";
  for (const int result : program.results) text += format(" {}", result);
  return text;
}

std::vector<int> compact_inputs(ElementwiseProgram& program) {
  std::vector<int> old;
  for (ScalarStep& step : program.steps) {
    if (step.function != ScalarFunction::input) continue;
    old.push_back(step.index);
    step.index = static_cast<int>(old.size()) - 1;
  }
  program.inputs = static_cast<int>(old.size());
  return old;
}

std::vector<double> evaluate(const ElementwiseProgram& program, std::span<const double> inputs) {
  std::vector<double> values;
  const auto operand = [&](int number) { return number < 0 ? 0.0 : values[static_cast<std::size_t>(number)]; };
  for (const ScalarStep& step : program.steps) {
    if (step.function == ScalarFunction::input) {
      values.push_back(inputs[static_cast<std::size_t>(step.index)]);
    } else if (step.function == ScalarFunction::constant) {
      values.push_back(step.value);
    } else {
      const auto& of = step.operands;
      values.push_back(value_of(step.function, operand(of[0]), operand(of[1]), operand(of[2])));
    }
  }
  std::vector<double> results;
  for (const int result : program.results) results.push_back(operand(result));
  return results;
}

}  // namespace trainctl
