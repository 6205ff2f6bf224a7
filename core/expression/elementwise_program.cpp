// Builds programs of elementwise functions: simplification, gradients and values in float64.
#include "core/expression/elementwise_program.h"

#include <cmath>
#include <limits>

#include "core/base/error.h"
#include "core/base/format.h"

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

double truth(bool value) { return value ? 1 : 0; }

double modulo(double a, double b) {
  const double rest = std::fmod(a, b);
  return rest * b < 0 ? rest + b : rest;
}

// The value of a function in float64.
double value_of(ScalarFunction function, double a, double b, double c) {
  using enum ScalarFunction;
  switch (function) {
    case input:
    case constant:
      break;
    case negative:
      return -a;
    case abs:
      return std::abs(a);
    case sign:
      return std::isnan(a) ? a : truth(a > 0) - truth(a < 0);
    case exp:
      return std::exp(a);
    case expm1:
      return std::expm1(a);
    case log:
      return std::log(a);
    case log1p:
      return std::log1p(a);
    case sqrt:
      return std::sqrt(a);
    case rsqrt:
      return 1 / std::sqrt(a);
    case reciprocal:
      return 1 / a;
    case sin:
      return std::sin(a);
    case cos:
      return std::cos(a);
    case tan:
      return std::tan(a);
    case arctan:
      return std::atan(a);
    case tanh:
      return std::tanh(a);
    case sigmoid:
      return 1 / (1 + std::exp(-a));
    case softplus:
      return std::max(a, 0.0) + std::log1p(std::exp(-std::abs(a)));
    case erf:
      return std::erf(a);
    case floor:
      return std::floor(a);
    case ceil:
      return std::ceil(a);
    case round:
      return std::nearbyint(a);
    case logical_not:
      return truth(a == 0);
    case isnan:
      return truth(std::isnan(a));
    case isfinite:
      return truth(std::isfinite(a));
    case stop_gradient:
      return a;
    case add:
      return a + b;
    case subtract:
      return a - b;
    case multiply:
      return a * b;
    case divide:
      return a / b;
    case power:
      return std::pow(a, b);
    case maximum:
      return std::isnan(a) || a >= b ? a : b;
    case minimum:
      return std::isnan(a) || a <= b ? a : b;
    case mod:
      return modulo(a, b);
    case floor_divide:
      return std::nearbyint((a - modulo(a, b)) / b);
    case less:
      return truth(a < b);
    case less_equal:
      return truth(a <= b);
    case equal:
      return truth(a == b);
    case not_equal:
      return truth(a != b);
    case logical_and:
      return truth(a != 0 && b != 0);
    case logical_or:
      return truth(a != 0 || b != 0);
    case logical_xor:
      return truth((a != 0) != (b != 0));
    case where:
      return a != 0 ? b : c;
  }
  return std::numeric_limits<double>::quiet_NaN();
}

// Whether a constant factor is between 1e-4 and 1e4. Products with such a factor may be reordered: the order changes
// which of them overflow or underflow only if the other values are near the ends of float32's range.
bool is_moderate(double factor) { return std::abs(factor) > 1e-4 && std::abs(factor) < 1e4; }

// Whether a function has gradient 0.
bool is_flat(ScalarFunction function) {
  using enum ScalarFunction;
  switch (function) {
    case sign:
    case floor:
    case ceil:
    case round:
    case logical_not:
    case isnan:
    case isfinite:
    case stop_gradient:
    case floor_divide:
    case less:
    case less_equal:
    case equal:
    case not_equal:
    case logical_and:
    case logical_or:
    case logical_xor:
      return true;
    default:
      return false;
  }
}

bool commutes(ScalarFunction function) {
  return function == ScalarFunction::add || function == ScalarFunction::multiply;
}

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

int ScalarGraph::slope(int number, int operand, int seed) {
  using enum ScalarFunction;
  const ScalarStep of = step(number);  // a copy, since steps are added
  const auto [a, b, c] = of.operands;
  const auto times = [&](int x, int y) { return apply(multiply, x, y); };
  const auto complement = [&](int x) { return apply(subtract, of_constant(1), x); };
  const auto nothing = of_constant(0);
  switch (of.function) {
    case negative:
      return apply(negative, seed);
    case abs:
      return times(seed, apply(sign, a));
    case exp:
      return times(seed, number);
    case expm1:
      return times(seed, apply(exp, a));
    case log:
      return apply(divide, seed, a);
    case log1p:
      return apply(divide, seed, apply(add, a, of_constant(1)));
    case sqrt:
      return apply(divide, times(seed, of_constant(0.5)), number);
    case rsqrt:
      return times(times(seed, of_constant(-0.5)), apply(divide, number, a));
    case reciprocal:
      return apply(negative, times(seed, times(number, number)));
    case sin:
      return times(seed, apply(cos, a));
    case cos:
      return apply(negative, times(seed, apply(sin, a)));
    case tan:
      return times(seed, apply(add, times(number, number), of_constant(1)));
    case arctan:
      return apply(divide, seed, apply(add, times(a, a), of_constant(1)));
    case tanh:
      return times(seed, complement(times(number, number)));
    case sigmoid:
      return times(seed, times(number, complement(number)));
    case softplus:
      return times(seed, apply(sigmoid, a));
    case erf:
      return times(seed, times(of_constant(2 / std::sqrt(std::acos(-1.0))), apply(exp, apply(negative, times(a, a)))));
    case ScalarFunction::add:
      return seed;
    case subtract:
      return operand == 0 ? seed : apply(negative, seed);
    case multiply:
      return times(seed, operand == 0 ? b : a);
    case divide:
      return operand == 0 ? apply(divide, seed, b) : apply(negative, times(seed, apply(divide, number, b)));
    case power:
      if (operand == 0) return times(seed, times(b, apply(power, a, apply(subtract, b, of_constant(1)))));
      return times(seed, apply(where, apply(less, nothing, a), times(number, apply(log, a)), nothing));
    case maximum:
    case minimum: {
      const int first = apply(less_equal, of.function == maximum ? b : a, of.function == maximum ? a : b);
      return operand == 0 ? apply(where, first, seed, nothing) : apply(where, first, nothing, seed);
    }
    case mod:
      return operand == 0 ? seed : apply(negative, times(seed, apply(floor_divide, a, b)));
    case where:
      return operand == 1 ? apply(where, a, seed, nothing) : apply(where, a, nothing, seed);
    default:
      require(false, format("elementwise program: {} has no derivative", name_of(of.function)));
      return nothing;
  }
}

std::vector<int> ScalarGraph::gradients(std::span<const int> roots, std::span<const int> seeds, int inputs) {
  const auto count = steps_.size();  // the steps of the gradients are added after these
  std::vector<int> gradient(count, -1);
  const auto contribute = [&](int number, int value) {
    int& sum = gradient[static_cast<std::size_t>(number)];
    sum = sum < 0 ? value : apply(ScalarFunction::add, sum, value);
  };
  // All gradients of one root are multiples of its seed, by which they are multiplied at the end.
  const bool scales = roots.size() == 1;
  for (std::size_t r = 0; r < roots.size(); ++r) contribute(roots[r], scales ? of_constant(1) : seeds[r]);
  for (int number = static_cast<int>(count) - 1; number >= 0; --number) {
    const int seed = gradient[static_cast<std::size_t>(number)];
    const ScalarStep of = step(number);
    if (seed < 0 || is_flat(of.function)) continue;
    if (const auto [base, exponent] = small_power(number); exponent > 1) {
      const int lower = exponent == 2 ? base : apply(ScalarFunction::multiply, base, base);
      const int slope = apply(ScalarFunction::multiply, of_constant(exponent), lower);
      contribute(base, apply(ScalarFunction::multiply, seed, slope));
      continue;
    }
    for (int k = of.function == ScalarFunction::where ? 1 : 0; k < operands_of(of.function); ++k) {
      const int operand = of.operands[static_cast<std::size_t>(k)];
      if (!constant_of(operand)) contribute(operand, slope(number, k, seed));
    }
  }
  std::vector<int> found;
  for (int i = 0; i < inputs; ++i) {
    const auto at = numbers_.find({.function = ScalarFunction::input, .index = i});
    const bool before = at != numbers_.end() && static_cast<std::size_t>(at->second) < count;
    const int value = before ? gradient[static_cast<std::size_t>(at->second)] : -1;
    found.push_back(value >= 0 && scales ? scaled(value, seeds[0]) : value);
  }
  return found;
}

int ScalarGraph::scaled(int value, int seed) {
  const ScalarStep of = step(value);
  if (of.function == ScalarFunction::where) {
    const auto a = constant_of(of.operands[1]), b = constant_of(of.operands[2]);
    if (a == 1.0 && b == 0.0) return apply(ScalarFunction::where, of.operands[0], seed, of.operands[2]);
    if (a == 0.0 && b == 1.0) return apply(ScalarFunction::where, of.operands[0], of.operands[1], seed);
  }
  return apply(ScalarFunction::multiply, value, seed);
}

std::pair<int, int> ScalarGraph::small_power(int number) const {
  const auto square_of = [this](int of) {
    const ScalarStep& square = step(of);
    const bool is_square = square.function == ScalarFunction::multiply && square.operands[0] == square.operands[1];
    return is_square ? square.operands[0] : -1;
  };
  if (const int base = square_of(number); base >= 0) return {base, 2};
  const ScalarStep& of = step(number);
  if (of.function != ScalarFunction::multiply) return {number, 1};
  for (const int k : {0, 1}) {
    const int base = of.operands[static_cast<std::size_t>(k)];
    if (square_of(of.operands[static_cast<std::size_t>(1 - k)]) == base) return {base, 3};
  }
  return {number, 1};
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
