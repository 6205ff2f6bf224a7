// Simplifies the values that are added to a ScalarGraph.
#include "core/expression/scalar_graph.h"

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/base/format.h"
#include "core/expression/scalar_value.h"

namespace trainctl {
namespace {

// Whether a constant factor is between 1e-4 and 1e4. Products with such a factor may be reordered: the order changes
// which of them overflow or underflow only if the other values are near the ends of float32's range.
bool is_moderate(double factor) { return std::abs(factor) > 1e-4 && std::abs(factor) < 1e4; }

bool commutes(ScalarFunction function) {
  return function == ScalarFunction::add || function == ScalarFunction::multiply;
}

}  // namespace

int ScalarGraph::number_of(const ScalarStep& step) {
  const auto [found, is_new] = numbers_.try_emplace(step, static_cast<int>(steps_.size()));
  if (is_new) steps_.push_back(step);
  return found->second;
}

int ScalarGraph::of_input(int index) { return number_of({.function = ScalarFunction::input, .index = index}); }

int ScalarGraph::of_constant(double value) {
  require(!std::isnan(value), "elementwise program: a constant is not a number");  // NaN would not be found in the map
  return number_of({.function = ScalarFunction::constant, .value = value});
}

std::optional<double> ScalarGraph::constant_of(int number) const {
  if (number < 0) return std::nullopt;
  const ScalarStep& of = step(number);
  return of.function == ScalarFunction::constant ? std::optional(of.value) : std::nullopt;
}

ScalarGraph::ScalarGraph(const ElementwiseProgram& program) {
  for (std::size_t i = 0; i < program.steps.size(); ++i) {
    require(number_of(program.steps[i]) == static_cast<int>(i), "elementwise program: a step occurs twice");
  }
}

int ScalarGraph::apply(ScalarFunction function, int a, int b, int c) {
  const int count = operands_of(function);
  require(count > 0 && a >= 0 && (count < 2 || b >= 0) && (count < 3 || c >= 0),
          format("elementwise program: {} needs {} operands", name_of(function), count));
  if (commutes(function) && a > b) std::swap(a, b);
  if (const auto simpler = simplified(function, a, b, c)) return *simpler;
  return number_of({.function = function, .operands = {a, b, c}});
}

std::optional<int> ScalarGraph::simplified(ScalarFunction function, int a, int b, int c) {
  using enum ScalarFunction;
  const auto x = constant_of(a), y = constant_of(b), z = constant_of(c);
  if (x && (b < 0 || y) && (c < 0 || z)) {
    const double value = value_of(function, *x, y.value_or(0), z.value_or(0));
    if (!std::isnan(value)) return of_constant(value);
  }
  switch (function) {
    case ScalarFunction::add:
      if (x == 0.0) return b;
      if (y == 0.0) return a;
      if (a == b) return apply(multiply, a, of_constant(2));
      if (step(b).function == negative) return apply(subtract, a, step(b).operands[0]);
      if (step(a).function == negative) return apply(subtract, b, step(a).operands[0]);
      return std::nullopt;
    case subtract:
      if (y == 0.0) return a;
      if (x == 0.0) return apply(negative, b);
      if (step(b).function == negative) return apply(ScalarFunction::add, a, step(b).operands[0]);
      return std::nullopt;
    case multiply:
      return x ? simplified_product(*x, b) : y ? simplified_product(*y, a) : simplified_product(a, b);
    case divide:
      if (y == 1.0) return a;
      if (x == 1.0) return apply(reciprocal, b);
      if (y && *y != 0 && std::isnormal(1 / *y)) return apply(multiply, a, of_constant(1 / *y));
      return std::nullopt;
    case negative:
      if (step(a).function == negative) return step(a).operands[0];
      if (const auto [factor, of] = factor_of(a); factor != 1) return apply(multiply, of_constant(-factor), of);
      return std::nullopt;
    case power:
      return y ? simplified_power(a, *y) : std::nullopt;
    case where:
      if (x) return *x != 0 ? b : c;
      return b == c ? std::optional(b) : std::nullopt;
    default:
      return std::nullopt;
  }
}

std::optional<int> ScalarGraph::simplified_product(double factor, int x) {
  if (factor == 1) return x;
  if (factor == -1) return apply(ScalarFunction::negative, x);
  if (step(x).function == ScalarFunction::negative) {
    return apply(ScalarFunction::multiply, of_constant(-factor), step(x).operands[0]);
  }
  const auto [inner, y] = factor_of(x);
  if (inner == 1 || !is_moderate(factor * inner)) return std::nullopt;
  return apply(ScalarFunction::multiply, of_constant(factor * inner), y);
}

std::optional<int> ScalarGraph::simplified_product(int a, int b) {
  using enum ScalarFunction;
  if (step(a).function == negative) return apply(negative, apply(multiply, step(a).operands[0], b));
  if (step(b).function == negative) return apply(negative, apply(multiply, a, step(b).operands[0]));
  const auto [of_a, x] = factor_of(a);
  const auto [of_b, y] = factor_of(b);
  if ((of_a == 1 && of_b == 1) || a == b || !is_moderate(of_a * of_b)) return std::nullopt;
  return apply(multiply, of_constant(of_a * of_b), apply(multiply, x, y));
}

std::pair<double, int> ScalarGraph::factor_of(int number) const {
  const ScalarStep& of = step(number);
  if (of.function == ScalarFunction::multiply) {
    for (const int k : {0, 1}) {
      const auto factor = constant_of(of.operands[static_cast<std::size_t>(k)]);
      if (factor && is_moderate(*factor)) return {*factor, of.operands[static_cast<std::size_t>(1 - k)]};
    }
  }
  return {1, number};
}

std::optional<int> ScalarGraph::simplified_power(int base, double exponent) {
  using enum ScalarFunction;
  if (exponent == 0) return of_constant(1);
  if (exponent == 1) return base;
  if (exponent == 0.5) return apply(sqrt, base);
  if (exponent == -0.5) return apply(rsqrt, base);
  if (exponent == -1) return apply(reciprocal, base);
  const int square = exponent == 2 || exponent == 3 || exponent == 4 ? apply(multiply, base, base) : -1;
  if (exponent == 2) return square;
  if (exponent == 3) return apply(multiply, square, base);
  if (exponent == 4) return apply(multiply, square, square);
  return std::nullopt;
}

ElementwiseProgram ScalarGraph::program(std::span<const int> results) const {
  std::vector<int> number(steps_.size(), -1);
  for (const int result : results) number[static_cast<std::size_t>(result)] = 0;
  for (std::size_t i = steps_.size(); i-- > 0;) {
    if (number[i] < 0) continue;
    for (const int operand : steps_[i].operands) {
      if (operand >= 0) number[static_cast<std::size_t>(operand)] = 0;
    }
  }
  ElementwiseProgram made;
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    if (number[i] < 0) continue;
    number[i] = static_cast<int>(made.steps.size());
    ScalarStep copy = steps_[i];
    for (int& operand : copy.operands) operand = operand < 0 ? -1 : number[static_cast<std::size_t>(operand)];
    if (copy.function == ScalarFunction::input) made.inputs = std::max(made.inputs, copy.index + 1);
    made.steps.push_back(copy);
  }
  for (const int result : results) made.results.push_back(number[static_cast<std::size_t>(result)]);
  return made;
}

}  // namespace trainctl
