// Tests elementwise programs: values and gradients of every function, and simplification.
#include "core/expression/elementwise_program.h"

#include <cmath>

#include "core/base/random.h"
#include "core/expression/scalar_graph.h"
#include "test/catch.h"

namespace trainctl::test::elementwise_program_test {
namespace {

constexpr int last_function = static_cast<int>(ScalarFunction::where);

// Random numbers between 0.2 and 1.8, where all functions are smooth.
double number(std::uint64_t row, std::uint32_t column) {
  const RandomKey key{3, Purpose::synthetic, 0, 0};
  return 0.2 + 1.6 * static_cast<double>(uniform01(key.block(row, column)[0]));
}

double value(const ElementwiseProgram& program, const std::vector<double>& inputs) {
  return evaluate(program, inputs)[0];
}

// A value and its derivatives by the inputs.
struct Expected {
  double value = 0;
  std::vector<double> slopes;
};

}  // namespace

TEST_CASE("the gradient of every function is that of finite differences") {
  using enum ScalarFunction;
  for (int f = static_cast<int>(negative); f <= last_function; ++f) {
    const auto function = static_cast<ScalarFunction>(f);
    if (function == stop_gradient) continue;
    const std::string name(name_of(function));
    CAPTURE(name);
    CHECK(scalar_function(name) == function);
    ScalarGraph graph;
    const int x = graph.of_input(0), y = graph.of_input(1), z = graph.of_input(2);
    const int count = operands_of(function);
    // Operands that themselves depend on all inputs, so that gradients of several paths are added.
    const int a = graph.apply(multiply, x, y), b = graph.apply(add, y, graph.apply(sin, z));
    const int root = graph.apply(function, a, count > 1 ? b : -1, count > 2 ? z : -1);
    const int seed = graph.of_input(3);
    const int roots[] = {root}, seeds[] = {seed};
    const std::vector<int> gradients = graph.gradients(roots, seeds, 3);
    const ElementwiseProgram program = graph.program(roots);
    for (std::uint64_t row = 0; row < 20; ++row) {
      const std::vector<double> at{number(row, 0), number(row, 1), number(row, 2), number(row, 3)};
      for (std::size_t i = 0; i < 3; ++i) {
        constexpr double step = 1e-6;
        std::vector<double> above = at, below = at;
        above[i] += step;
        below[i] -= step;
        const double expected = at[3] * (value(program, above) - value(program, below)) / (2 * step);
        const int found[] = {gradients[i]};
        const double gradient = found[0] < 0 ? 0 : value(graph.program(found), at);
        if (std::abs(expected) < 1e4)
          CHECK(gradient == Approx(expected).epsilon(1e-5).margin(1e-6));  // no step between
      }
    }
  }
}

TEST_CASE("gradients at the points where functions have a kink are TensorFlow's") {
  using enum ScalarFunction;
  ScalarGraph graph;
  const int x = graph.of_input(0), zero = graph.of_constant(0), one = graph.of_constant(1);
  const auto gradient_at = [&](int root, double at) {
    const int roots[] = {root}, seeds[] = {one};
    const int gradient[] = {graph.gradients(roots, seeds, 1)[0]};
    return value(graph.program(gradient), {at});
  };
  CHECK(gradient_at(graph.apply(maximum, zero, x), 0) == 0);
  CHECK(gradient_at(graph.apply(maximum, x, zero), 0) == 1);
  CHECK(gradient_at(graph.apply(minimum, x, one), 1) == 1);
  CHECK(gradient_at(graph.apply(abs, x), 0) == 0);
  CHECK(graph.gradients(std::vector{graph.apply(stop_gradient, x)}, std::vector{one}, 1)[0] == -1);
  CHECK(graph.gradients(std::vector{graph.apply(floor, x)}, std::vector{one}, 1)[0] == -1);
}

TEST_CASE("simplified expressions and their gradients have the values of the expressions as they are written") {
  using enum ScalarFunction;
  constexpr ScalarFunction functions[] = {add, subtract, multiply, multiply, negative, tanh, divide};
  for (std::uint64_t round = 0; round < 300; ++round) {
    const RandomKey key{5, Purpose::synthetic, 0, 0};
    std::uint32_t drawn = 0;
    const auto below = [&](std::size_t bound) { return key.block(round, drawn++)[0] % bound; };
    const std::vector<double> at{number(round, 0), -number(round, 1)};
    ScalarGraph graph;
    std::vector<int> steps{graph.of_input(0), graph.of_input(1)};
    std::vector<Expected> values{{at[0], {1, 0}}, {at[1], {0, 1}}};
    for (const double constant : {1.0, -1.0, 0.5, 3.0}) {
      steps.push_back(graph.of_constant(constant));
      values.push_back({constant, {0, 0}});
    }
    for (int k = 0; k < 12; ++k) {
      const ScalarFunction function = functions[below(std::size(functions))];
      const std::size_t i = below(steps.size()), j = below(steps.size());
      const Expected &a = values[i], &b = values[j];
      if (function == divide && std::abs(b.value) < 0.1) continue;
      Expected made;
      for (std::size_t d = 0; d < 2; ++d) {
        const double da = a.slopes[d], db = b.slopes[d];
        if (function == add) made.value = a.value + b.value, made.slopes.push_back(da + db);
        if (function == subtract) made.value = a.value - b.value, made.slopes.push_back(da - db);
        if (function == multiply) made.value = a.value * b.value, made.slopes.push_back(da * b.value + a.value * db);
        if (function == negative) made.value = -a.value, made.slopes.push_back(-da);
        if (function == tanh) {
          made.value = std::tanh(a.value);
          made.slopes.push_back(da * (1 - made.value * made.value));
        }
        if (function == divide) {
          made.value = a.value / b.value;
          made.slopes.push_back((da - made.value * db) / b.value);
        }
      }
      if (std::abs(made.value) > 1e3) continue;
      steps.push_back(graph.apply(function, steps[i], operands_of(function) > 1 ? steps[j] : -1));
      values.push_back(made);
    }
    const int roots[] = {steps.back()}, seeds[] = {graph.of_input(2)};
    const ElementwiseProgram program = graph.program(roots);
    CAPTURE(round, to_string(program));
    CHECK(value(program, {at[0], at[1], 0.7}) == Approx(values.back().value).epsilon(1e-9).margin(1e-9));
    const std::vector<int> gradients = graph.gradients(roots, seeds, 2);
    for (std::size_t d = 0; d < 2; ++d) {
      const int found[] = {gradients[d]};
      const double gradient = found[0] < 0 ? 0 : value(graph.program(found), {at[0], at[1], 0.7});
      CHECK(gradient == Approx(0.7 * values.back().slopes[d]).epsilon(1e-9).margin(1e-9));
    }
  }
}

TEST_CASE("signs and constant factors of products are joined") {
  using enum ScalarFunction;
  ScalarGraph graph;
  const int x = graph.of_input(0), y = graph.of_input(1);
  const auto times = [&](double factor, int of) { return graph.apply(multiply, graph.of_constant(factor), of); };
  CHECK(graph.apply(multiply, times(2, x), times(3, y)) == times(6, graph.apply(multiply, x, y)));
  CHECK(graph.apply(add, x, graph.apply(negative, y)) == graph.apply(subtract, x, y));
  CHECK(graph.apply(add, x, x) == times(2, x));
  CHECK(graph.apply(multiply, graph.apply(negative, x), times(2, y)) == times(-2, graph.apply(multiply, x, y)));
  // The product of these factors is not a number of float32.
  CHECK(times(1e-30, times(1e-30, x)) != times(1e-60, x));
}

TEST_CASE("programs keep what a value needs, and each value once") {
  using enum ScalarFunction;
  ScalarGraph graph;
  const int x = graph.of_input(0), y = graph.of_input(1);
  CHECK(graph.apply(add, x, y) == graph.apply(add, y, x));
  CHECK(graph.apply(add, x, graph.of_constant(0)) == x);
  CHECK(graph.apply(multiply, graph.of_constant(1), x) == x);
  CHECK(graph.apply(negative, graph.apply(negative, x)) == x);
  CHECK(graph.apply(power, x, graph.of_constant(2)) == graph.apply(multiply, x, x));
  CHECK(graph.apply(divide, graph.of_constant(3), graph.of_constant(2)) == graph.of_constant(1.5));
  const int results[] = {graph.apply(exp, graph.apply(subtract, y, graph.of_constant(2)))};
  const ElementwiseProgram program = graph.program(results);
  CHECK(to_string(program) == "i1 2 subtract(0,1) exp(2) -> 3");
  CHECK(program.inputs == 2);
  CHECK(value(program, {0, 2}) == 1);
  CHECK(ScalarGraph(program).program(program.results) == program);
}

}  // namespace trainctl::test::elementwise_program_test
