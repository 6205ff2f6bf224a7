// Computes elementwise functions with the standard library.
#include "core/expression/scalar_value.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace trainctl {
namespace {

double truth(bool value) { return value ? 1 : 0; }

double modulo(double a, double b) {
  const double rest = std::fmod(a, b);
  return rest * b < 0 ? rest + b : rest;
}

}  // namespace

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

}  // namespace trainctl
