// Adds the gradients of a ScalarGraph's values to it.
#include "core/expression/scalar_graph.h"

#include <cmath>

#include "core/base/error.h"
#include "core/base/format.h"

namespace trainctl {
namespace {

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

}  // namespace

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

}  // namespace trainctl
