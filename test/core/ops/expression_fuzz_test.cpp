// Compares random expressions with float64: their values, and their gradients with finite differences in float64.
#include <cmath>
#include <cstdlib>
#include <functional>
#include <random>

#include "core/backend/select.h"
#include "core/base/format.h"
#include "core/layers/expression/builder.h"
#include "test/catch.h"
#include "test/core/ops/run_case.h"

namespace trainctl::test::expression_fuzz_test {
namespace {

constexpr int samples = 2;

// Float64 values [samples, rows, columns].
struct Array {
  int rows = 0, columns = 0;
  std::vector<double> values;

  Array(int r, int c) : rows(r), columns(c), values(static_cast<std::size_t>(samples * r * c)) {}
  double& at(int n, int i, int j) { return values[static_cast<std::size_t>((n * rows + i) * columns + j)]; }
  double at(int n, int i, int j) const { return values[static_cast<std::size_t>((n * rows + i) * columns + j)]; }
};

Array made(int rows, int columns, const std::function<double(int, int, int)>& value) {
  Array y(rows, columns);
  for (int n = 0; n < samples; ++n) {
    for (int i = 0; i < rows; ++i) {
      for (int j = 0; j < columns; ++j) y.at(n, i, j) = value(n, i, j);
    }
  }
  return y;
}

// The element of an array that is broadcast.
double wide(const Array& x, int n, int i, int j) { return x.at(n, x.rows == 1 ? 0 : i, x.columns == 1 ? 0 : j); }

using Inputs = std::vector<Array>;  // x, y [samples, 3, 4], and the weight [4] as [samples, 1, 4]

// An expression as text, and the same in float64.
struct Made {
  std::string text;
  int rows, columns;
  std::function<Array(const Inputs&)> value;
};

struct Unary {
  const char* text;  // of {}
  double (*value)(double);
};
const Unary unary[] = {
    {"tanh({})", std::tanh},
    {"sigmoid({})", [](double x) { return 1 / (1 + std::exp(-x)); }},
    {"sin({})", std::sin},
    {"cos({})", std::cos},
    {"arctan({})", std::atan},
    {"erf({})", std::erf},
    {"exp(-square({}))", [](double x) { return std::exp(-x * x); }},
    {"exp(tanh({}))", [](double x) { return std::exp(std::tanh(x)); }},
    {"softplus({})", [](double x) { return std::log1p(std::exp(x)); }},
    {"sqrt(1 + {} ** 2)", [](double x) { return std::sqrt(1 + x * x); }},
    {"log1p(square({}))", [](double x) { return std::log1p(x * x); }},
    {"relu({})", [](double x) { return std::max(x, 0.0); }},
    {"abs({})", [](double x) { return std::abs(x); }},
    {"(-{})", [](double x) { return -x; }},
    {"arcsinh({})", std::asinh},
    {"gelu({}, approximate=False)", [](double x) { return x * (1 + std::erf(x / std::sqrt(2))) / 2; }},
    {"elu({})", [](double x) { return x > 0 ? x : std::expm1(x); }},
    {"clip({}, -0.75, 0.5)", [](double x) { return std::clamp(x, -0.75, 0.5); }},
    {"silu({})", [](double x) { return x / (1 + std::exp(-x)); }},
    {"(0.5 * {} - 0.25)", [](double x) { return 0.5 * x - 0.25; }}};

struct Binary {
  const char* text;  // of {} and {}
  double (*value)(double, double);
};
const Binary binary[] = {{"({} + {})", [](double a, double b) { return a + b; }},
                         {"({} - {})", [](double a, double b) { return a - b; }},
                         {"({} * {})", [](double a, double b) { return a * b; }},
                         {"({} / (1 + square({})))", [](double a, double b) { return a / (1 + b * b); }},
                         {"maximum({}, {})", [](double a, double b) { return std::max(a, b); }},
                         {"minimum({}, {})", [](double a, double b) { return std::min(a, b); }},
                         {"logaddexp({}, {})", [](double a, double b) { return a + std::log1p(std::exp(b - a)); }}};

class Expressions {
 public:
  explicit Expressions(std::uint32_t seed) : random_(seed) {}

  Made next(int depth) {
    if (depth == 0) return leaf();
    switch (below(13)) {
      case 0:
      case 1:
        return apply(unary[below(std::size(unary))], next(depth - 1));
      case 2:
      case 3:
      case 4:
        return apply(binary[below(std::size(binary))], next(depth - 1), next(depth - 1));
      case 5:
        return reduced(next(depth - 1));
      case 6:
        return softmax(next(depth - 1));
      case 7:
        return swapped(next(depth - 1));
      case 8:
        return part(next(depth - 1));
      case 9:
        return joined(next(depth - 1));
      case 10:
        return summed(next(depth - 1));
      case 11:
        return taken(next(depth - 1));
      default:
        return product(next(depth - 1));
    }
  }

 private:
  std::size_t below(std::size_t bound) { return std::uniform_int_distribution<std::size_t>(0, bound - 1)(random_); }

  Made leaf() {
    const std::size_t which = below(3);
    if (which < 2) return {which == 0 ? "x" : "y", 3, 4, [which](const Inputs& of) { return of[which]; }};
    return {"(x * w)", 3, 4, [](const Inputs& of) {
              return made(3, 4, [&](int n, int i, int j) { return of[0].at(n, i, j) * of[2].at(n, 0, j); });
            }};
  }

  static Made apply(const Unary& function, const Made& x) {
    return {with(function.text, x.text), x.rows, x.columns, [x, &function](const Inputs& of) {
              Array y = x.value(of);
              for (double& value : y.values) value = function.value(value);
              return y;
            }};
  }

  // The mean along dimensions in which the shapes do not fit.
  static Made fitted(Made x, int rows, int columns) {
    for (const int axis : {1, 2}) {
      const int size = axis == 1 ? x.rows : x.columns, wanted = axis == 1 ? rows : columns;
      if (size == 1 || size == wanted || wanted == 1) continue;
      x = along("mean", x, axis, [](const std::vector<double>& values) {
        double sum = 0;
        for (const double value : values) sum += value;
        return sum / static_cast<double>(values.size());
      });
    }
    return x;
  }

  static Made apply(const Binary& function, const Made& a, const Made& other) {
    const Made b = fitted(other, a.rows, a.columns);
    const int rows = std::max(a.rows, b.rows), columns = std::max(a.columns, b.columns);
    return {with(function.text, a.text, b.text), rows, columns, [=, &function](const Inputs& of) {
              const Array left = a.value(of), right = b.value(of);
              return made(rows, columns, [&](int n, int i, int j) {
                return function.value(wide(left, n, i, j), wide(right, n, i, j));
              });
            }};
  }

  static Made along(const std::string& name, const Made& x, int axis,
                    const std::function<double(const std::vector<double>&)>& function) {
    const int rows = axis == 1 ? 1 : x.rows, columns = axis == 2 ? 1 : x.columns;
    return {format("{}({}, axis={}, keepdims=True)", name, x.text, axis), rows, columns, [=](const Inputs& of) {
              const Array from = x.value(of);
              return made(rows, columns, [&](int n, int i, int j) {
                std::vector<double> values;
                for (int k = 0; k < (axis == 1 ? x.rows : x.columns); ++k) {
                  values.push_back(axis == 1 ? from.at(n, k, j) : from.at(n, i, k));
                }
                return function(values);
              });
            }};
  }

  Made reduced(const Made& x) {
    const int axis = 1 + static_cast<int>(below(2));
    switch (below(4)) {
      case 0:
        return along("sum", x, axis, [](const auto& values) {
          double sum = 0;
          for (const double value : values) sum += value;
          return sum;
        });
      case 1:
        return along("max", x, axis,
                     [](const auto& values) { return *std::max_element(values.begin(), values.end()); });
      case 2:
        return along("logsumexp", x, axis, [](const auto& values) {
          double sum = 0;
          for (const double value : values) sum += std::exp(value);
          return std::log(sum);
        });
      default:
        return along("var", x, axis, [](const auto& values) {
          double sum = 0, squares = 0;
          for (const double value : values) sum += value / static_cast<double>(values.size());
          for (const double value : values) squares += (value - sum) * (value - sum);
          return squares / static_cast<double>(values.size());
        });
    }
  }

  Made softmax(const Made& x) {
    const int axis = 1 + static_cast<int>(below(2));
    return {format("softmax({}, axis={})", x.text, axis), x.rows, x.columns, [=](const Inputs& of) {
              const Array from = x.value(of);
              return made(x.rows, x.columns, [&](int n, int i, int j) {
                double sum = 0;
                for (int k = 0; k < (axis == 1 ? x.rows : x.columns); ++k) {
                  sum += std::exp(axis == 1 ? from.at(n, k, j) : from.at(n, i, k));
                }
                return std::exp(from.at(n, i, j)) / sum;
              });
            }};
  }

  Made swapped(const Made& x) {
    const char* const texts[] = {"transpose({}, (0, 2, 1))", "swapaxes({}, 1, 2)", "einsum('bij->bji', {})"};
    return {with(texts[below(3)], x.text), x.columns, x.rows, [x](const Inputs& of) {
              const Array from = x.value(of);
              return made(x.columns, x.rows, [&](int n, int i, int j) { return from.at(n, j, i); });
            }};
  }

  // Some rows, which are rolled by one row.
  Made part(const Made& x) {
    const int first = static_cast<int>(below(static_cast<std::size_t>(x.rows))), rows = x.rows - first;
    return {format("roll({}[:, {}:], 1, axis=1)", x.text, first), rows, x.columns, [=](const Inputs& of) {
              const Array from = x.value(of);
              return made(rows, x.columns,
                          [&](int n, int i, int j) { return from.at(n, first + (i + rows - 1) % rows, j); });
            }};
  }

  // Sums of the rows from the first or from the last one on.
  Made summed(const Made& x) {
    const bool from_last = below(2) == 1;
    return {with(from_last ? "flip(cumsum(flip({}, axis=1), axis=1), axis=1)" : "cumsum({}, axis=1)", x.text), x.rows,
            x.columns, [=](const Inputs& of) {
              const Array from = x.value(of);
              return made(x.rows, x.columns, [&](int n, int i, int j) {
                double sum = 0;
                for (int k = 0; k < x.rows; ++k) sum += (from_last ? k >= i : k <= i) ? from.at(n, k, j) : 0;
                return sum;
              });
            }};
  }

  // Columns that a list names, some of them twice, with their numbers as factors.
  Made taken(const Made& x) {
    std::vector<int> columns;
    std::string list;
    for (std::size_t count = 1 + below(4); columns.size() < count;) {
      columns.push_back(static_cast<int>(below(static_cast<std::size_t>(x.columns))));
      list += (list.empty() ? "" : ", ") + std::to_string(columns.back());
    }
    const auto count = static_cast<int>(columns.size());
    return {format("(take({}, [{}], axis=2) * arange({}))", x.text, list, count), x.rows, count, [=](const Inputs& of) {
              const Array from = x.value(of);
              return made(x.rows, count,
                          [&](int n, int i, int j) { return j * from.at(n, i, columns[static_cast<std::size_t>(j)]); });
            }};
  }

  Made joined(const Made& x) {
    const bool by_rows = below(2) == 0;
    if (std::max(x.rows, x.columns) > 8) return x;
    return {format("concatenate([{0}, 2 * {0}], axis={1})", x.text, by_rows ? 1 : -1), x.rows * (by_rows ? 2 : 1),
            x.columns * (by_rows ? 1 : 2), [=](const Inputs& of) {
              const Array from = x.value(of);
              return made(x.rows * (by_rows ? 2 : 1), x.columns * (by_rows ? 1 : 2), [&](int n, int i, int j) {
                return (i < x.rows && j < x.columns ? 1 : 2) * from.at(n, i % x.rows, j % x.columns);
              });
            }};
  }

  Made product(const Made& x) {
    const char* const texts[] = {"einsum('bij,bkj->bik', {0}, tanh({0}))", "({0} @ swapaxes(tanh({0}), 1, 2))"};
    return {with(texts[below(2)], x.text), x.rows, x.rows, [x](const Inputs& of) {
              const Array from = x.value(of);
              return made(x.rows, x.rows, [&](int n, int i, int k) {
                double sum = 0;
                for (int j = 0; j < x.columns; ++j) sum += from.at(n, i, j) * std::tanh(from.at(n, k, j));
                return sum;
              });
            }};
  }

  // Replaces {} or {0} by a, and a second {} by b.
  static std::string with(std::string text, const std::string& a, const std::string& b = "") {
    bool is_first = true;
    for (std::size_t at = 0; (at = text.find('{', at)) != std::string::npos;) {
      const std::size_t length = text[at + 1] == '0' ? 3 : 2;
      const std::string& value = is_first || length == 3 ? a : b;
      text.replace(at, length, value);
      at += value.size();
      is_first = false;
    }
    return text;
  }

  std::mt19937 random_;
};

TensorId expand(Graph& graph, const std::string& text, const std::vector<TensorId>& ids) {
  ExpressionScope scope;
  scope.dtype = graph.compute;
  scope.tensors = {{"x", {ids[0], true}}, {"y", {ids[1], true}}, {"w", {ids[2], false}}};
  scope.append = [&](std::shared_ptr<const OpDef> def, std::vector<TensorId> of) {
    return graph.outputs[0] = graph.add_op(std::move(def), std::move(of), "expression", {})[0];
  };
  scope.type_of = [&](TensorId id) { return graph.tensor(id).type; };
  ExpressionBuilder builder(scope);
  return graph.outputs[0] = builder.tensor(builder.evaluate(parse_expression(text)));
}

double product(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

Inputs arrays(const std::vector<Value>& values) {
  Inputs of{Array(3, 4), Array(3, 4), Array(1, 4)};
  of[0].values = values[0].values;
  of[1].values = values[1].values;
  for (int n = 0; n < samples; ++n) {
    for (int j = 0; j < 4; ++j) of[2].at(n, 0, j) = values[2].values[static_cast<std::size_t>(j)];
  }
  return of;
}

// Compares an element of a gradient with central differences, unless it is close to a kink. Returns whether it did.
bool check_slope(const Made& expression, std::vector<Value> inputs, const std::vector<double>& weights,
                 std::size_t input, std::size_t element, double found, double typical) {
  const double middle = inputs[input].values[element];
  const auto slope = [&](double step) {
    double sums[2];
    for (const int side : {0, 1}) {
      inputs[input].values[element] = middle + (side == 0 ? step : -step);
      sums[side] = product(expression.value(arrays(inputs)).values, weights);
    }
    return (sums[0] - sums[1]) / (2 * step);
  };
  const double wide = slope(1e-4), narrow = slope(1e-5), scale = std::abs(narrow) + typical + 1e-3;
  if (std::abs(wide - narrow) > 1e-4 * scale) return false;
  CAPTURE(input, element, narrow, found);
  CHECK(std::abs(found - narrow) < 2e-3 * scale);
  return true;
}

}  // namespace

// TRAINCTL_FUZZ_EXPRESSIONS: the number of expressions.
TEST_CASE("random expressions have the values and gradients of float64") {
  const char* count = std::getenv("TRAINCTL_FUZZ_EXPRESSIONS");
  const auto backend = backend_under_test();
  KernelChoices choices;
  Expressions expressions(11);
  std::mt19937 random(5);
  int compared = 0;
  const int all = count == nullptr ? 60 : std::atoi(count);
  for (int number = 0; number < all; ++number) {
    const Made expression = expressions.next(2 + number % 4);
    CAPTURE(expression.text);
    if (expression.text.size() > 2000) continue;
    std::vector<Value> inputs;
    const Shape shapes[] = {{samples, 3, 4}, {samples, 3, 4}, {4}};
    for (std::size_t i = 0; i < 3; ++i) {
      inputs.push_back(random_value(shapes[i], DType::float32, random(), -1.5, 1.5));
    }
    const OpCase which{"expression", "xxx", [&](Graph& graph, const std::vector<TensorId>& ids) {
                         return std::vector{expand(graph, expression.text, ids)};
                       }};
    CaseRun run(which, {DType::float32, number % 2 == 0, false}, inputs, *backend, choices);
    const Value output = run.forward(inputs)[0];
    const Array expected = expression.value(arrays(inputs));
    const double largest = magnitude(expected.values) + 1e-3;
    REQUIRE(output.values.size() == expected.values.size());
    for (std::size_t i = 0; i < output.values.size(); ++i) {
      CAPTURE(i, output.values[i], expected.values[i]);
      CHECK(std::abs(output.values[i] - expected.values[i]) < 1e-4 * (largest + std::abs(expected.values[i])));
    }
    const Value weights = random_value(output.type.shape, DType::float32, random());
    const std::vector<Value> gradients = run.backward(weights);
    for (std::size_t i = 0; i < 3; ++i) {
      if (gradients[i].values.empty()) continue;
      const std::size_t element = random() % inputs[i].values.size();
      compared += check_slope(expression, inputs, weights.values, i, element, gradients[i].values[element],
                              magnitude(gradients[i].values))
                      ? 1
                      : 0;
    }
  }
  CHECK(compared > all);
}

}  // namespace trainctl::test::expression_fuzz_test
