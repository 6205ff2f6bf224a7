// Compares programs of elementwise functions, and sums and extremes over dimensions, with float64.
#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "core/expression/scalar_graph.h"
#include "core/graph/ops/elementwise/elementwise.h"
#include "core/graph/ops/reduce.h"
#include "test/catch.h"
#include "test/core/backend/run_op.h"

namespace trainctl::test::expression_ops_test {
namespace {

ElementwiseProgram program_of(ScalarGraph& graph, const std::vector<int>& results) { return graph.program(results); }

// The index of the element of a broadcast input that belongs to element `at` of a tensor of shape `to`.
std::size_t broadcast_index(const Shape& x, const Shape& to, std::int64_t at) {
  std::int64_t index = 0, stride = 1;
  for (std::int64_t i = 0; i < to.rank(); ++i) {
    const std::int64_t size = to[to.rank() - 1 - i], coordinate = at % size;
    at /= size;
    if (i >= x.rank()) continue;
    const std::int64_t of = x[x.rank() - 1 - i];
    index += of == 1 ? 0 : coordinate * stride;
    stride *= of;
  }
  return static_cast<std::size_t>(index);
}

// The results of the op by evaluate().
std::vector<std::vector<double>> expected(const Elementwise& def, const std::vector<Value>& inputs) {
  std::vector<TensorType> types;
  for (const Value& input : inputs) types.push_back(input.type);
  const Shape to = def.outputs(types)[0].shape;
  std::vector<std::vector<double>> found(def.dtypes.size());
  for (std::int64_t i = 0; i < to.count(); ++i) {
    std::vector<double> values;
    for (const Value& input : inputs) values.push_back(input.values[broadcast_index(input.type.shape, to, i)]);
    const std::vector<double> results = evaluate(def.program, values);
    for (std::size_t r = 0; r < results.size(); ++r) found[r].push_back(results[r]);
  }
  return found;
}

}  // namespace

TEST_CASE("every elementwise function has its value") {
  const auto backend = backend_under_test({.threads = 2});
  for (int f = static_cast<int>(ScalarFunction::negative); f <= static_cast<int>(ScalarFunction::where); ++f) {
    const auto function = static_cast<ScalarFunction>(f);
    CAPTURE(name_of(function));
    ScalarGraph graph;
    const int count = operands_of(function);
    const int root = graph.apply(function, graph.of_input(0), count > 1 ? graph.of_input(1) : -1,
                                 count > 2 ? graph.of_input(2) : -1);
    const auto def = std::make_shared<Elementwise>(program_of(graph, {root}), std::vector{DType::float32});
    std::vector<Value> inputs;
    const bool positive = function == ScalarFunction::log || function == ScalarFunction::sqrt ||
                          function == ScalarFunction::rsqrt || function == ScalarFunction::power ||
                          function == ScalarFunction::log1p || function == ScalarFunction::reciprocal ||
                          function == ScalarFunction::divide || function == ScalarFunction::mod ||
                          function == ScalarFunction::floor_divide;
    for (int i = 0; i < count; ++i) {
      const auto seed = static_cast<std::uint64_t>(7 * f + i);
      inputs.push_back(random_value({3, 700}, DType::float32, seed, positive ? 0.01 : -4, 4));
      for (std::size_t k = 0; k < 50; ++k)
        inputs.back().values[3 * k] = static_cast<double>(k % 4) + (positive ? 1 : -1);
    }
    const Value found = run_op(*backend, def, inputs)[0];
    CHECK(largest_error(found, expected(*def, inputs)[0]) < 2e-6);
  }
}

TEST_CASE("elementwise functions at the ends of their range") {
  const auto backend = backend_under_test({.threads = 1});
  constexpr double infinity = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  const auto value = [&](ScalarFunction function, double a, double b = 0) {
    ScalarGraph graph;
    const int root = graph.apply(function, graph.of_input(0), operands_of(function) > 1 ? graph.of_input(1) : -1);
    const auto def = std::make_shared<Elementwise>(program_of(graph, {root}), std::vector{DType::float32});
    std::vector<Value> inputs{row({a})};
    if (operands_of(function) > 1) inputs.push_back(row({b}));
    return run_op(*backend, def, inputs)[0].values[0];
  };
  using enum ScalarFunction;
  CHECK(value(exp, 100) == infinity);
  CHECK(value(exp, -200) == 0);
  CHECK(value(log, 0) == -infinity);
  CHECK(std::isnan(value(log, -1)));
  CHECK(value(log, infinity) == infinity);
  CHECK(value(log, 1e-40) == Approx(std::log(1e-40)).epsilon(1e-5));
  CHECK(value(log1p, 1e-9) == Approx(1e-9));
  CHECK(value(log1p, -1) == -infinity);
  CHECK(value(expm1, 1e-9) == Approx(1e-9));
  CHECK(value(power, -2, 3) == Approx(-8));
  CHECK(value(power, -2, 2) == Approx(4));
  CHECK(std::isnan(value(power, -2, 0.5)));
  CHECK(value(power, 0, 0) == 1);
  CHECK(value(power, 0, 2) == 0);
  CHECK(value(power, 0, -1) == infinity);
  CHECK(value(round, 2.5) == 2);
  CHECK(value(mod, -3, 5) == 2);
  for (const ScalarFunction of : {exp, log, sqrt, tanh, sign, maximum, minimum, abs}) {
    CAPTURE(name_of(of));
    CHECK(std::isnan(value(of, nan, 1)));
  }
  CHECK(std::isnan(value(maximum, 1, nan)));
  CHECK(value(isnan, nan) == 1);
  CHECK(value(isfinite, infinity) == 0);
}

TEST_CASE("a program of broadcast inputs of several dtypes, with several results, also in place") {
  const auto backend = backend_under_test({.threads = 2});
  const DType dtype = GENERATE(DType::float32, DType::bfloat16);
  ScalarGraph graph;
  const int x = graph.of_input(0), scale = graph.of_input(1), bias = graph.of_input(2), number = graph.of_input(3);
  using enum ScalarFunction;
  const int z = graph.apply(add, graph.apply(multiply, x, scale), bias);
  const int y = graph.apply(multiply, z, graph.apply(ScalarFunction::sigmoid, graph.apply(subtract, z, number)));
  const auto def = std::make_shared<Elementwise>(program_of(graph, {y, graph.apply(tanh, x), scale}),
                                                 std::vector{dtype, DType::float32, DType::float32});
  struct Shapes {
    Shape x, scale, bias, number;
  };
  const Shapes cases[] = {{{2, 3, 5}, {5}, {3, 1}, {2, 1, 1}},
                          {{700, 3}, {3}, {1}, {700, 1}},
                          {{4, 1030}, {1030}, {4, 1}, {1}},
                          {{6, 1, 4}, {1, 7, 1}, {4}, {6, 7, 1}},
                          {{5}, {5}, {}, {1}},
                          {{3, 40, 50}, {1, 50}, {40, 1}, {3, 40, 50}}};
  for (const Shapes& of : cases) {
    CAPTURE(to_string(of.x), to_string(of.scale));
    const std::vector<Value> inputs{random_value(of.x, dtype, 1), random_value(of.scale, DType::float32, 2),
                                    random_value(of.bias, DType::float32, 3),
                                    random_integers(of.number, DType::int32, 4, 9)};
    const auto results = expected(*def, inputs);
    for (const OutputPlaces places : {OutputPlaces::apart, OutputPlaces::in_place}) {
      const auto found = run_op(*backend, def, inputs, {}, nullptr, nullptr, places);
      CHECK(largest_error(found[0], results[0]) < (dtype == DType::float32 ? 2e-6 : 8e-3));
      CHECK(largest_error(found[1], results[1]) < 2e-6);
      CHECK(largest_error(found[2], results[2]) == 0);
    }
  }
}

TEST_CASE("random programs have their values, and the same bits with any number of threads") {
  using enum ScalarFunction;
  constexpr ScalarFunction functions[] = {add, subtract, multiply, add,     subtract, multiply, multiply,
                                          add, maximum,  negative, sigmoid, erf,      exp,      tanh};
  std::mt19937_64 random(7);
  const auto below = [&](std::size_t bound) { return static_cast<int>(random() % bound); };
  for (int round = 0; round < 60; ++round) {
    ScalarGraph graph;
    std::vector<int> values{graph.of_input(0), graph.of_input(1), graph.of_input(2), graph.of_constant(0.75),
                            graph.of_constant(-1.5)};
    // Conditions that are one value for each row, or other values within a row.
    const int conditions[] = {graph.apply(less, values[2], graph.of_constant(0.1)),
                              graph.apply(less, values[0], graph.of_constant(0.2))};
    for (int k = 0; k < 25; ++k) {
      const ScalarFunction function = functions[below(std::size(functions))];
      const auto operand = [&] { return values[static_cast<std::size_t>(below(values.size()))]; };
      int value = graph.apply(function, operand(), operands_of(function) > 1 ? operand() : -1);
      // Values stay between -1 and 1, so that errors do not grow; also a value and its e^(-x^2), as in a gradient.
      if (k % 3 == 2) value = graph.apply(tanh, value);
      if (k % 4 == 1)
        value = graph.apply(where, conditions[below(2)], value,
                            round % 3 == 0 ? graph.apply(stop_gradient, value) : operand());
      if (k % 7 == 6) value = graph.apply(exp, graph.apply(negative, graph.apply(multiply, value, value)));
      values.push_back(value);
    }
    // In some rounds, two results are the same value.
    const std::vector<int> results{values[values.size() - 1], values[values.size() - (round % 4 == 0 ? 1 : 3)],
                                   values[values.size() - 8]};
    const auto def = std::make_shared<Elementwise>(program_of(graph, results), std::vector(3, DType::float32));
    CAPTURE(round, to_string(def->program));
    std::vector<Value> inputs{random_value({37, 1100}, DType::float32, 1), random_value({1100}, DType::float32, 2),
                              random_value({37, 1}, DType::float32, 3)};
    inputs.resize(static_cast<std::size_t>(def->program.inputs));
    if (inputs.size() < 2) continue;
    const auto results_in_float64 = expected(*def, inputs);
    std::vector<std::vector<Value>> runs;
    for (const int threads : {1, 3}) {
      const auto backend = backend_under_test({.threads = threads});
      runs.push_back(run_op(*backend, def, inputs));
      runs.push_back(run_op(*backend, def, inputs, {}, nullptr, nullptr, OutputPlaces::in_place));
    }
    for (std::size_t r = 0; r < 3; ++r) {
      const double largest = std::abs(*std::max_element(results_in_float64[r].begin(), results_in_float64[r].end(),
                                                        [](double a, double b) { return std::abs(a) < std::abs(b); }));
      if (largest < 10) CHECK(largest_error(runs[0][r], results_in_float64[r]) < 1e-4);
      for (const std::vector<Value>& run : runs) CHECK(run[r].values == runs[0][r].values);
    }
  }
}

TEST_CASE("an input is repeated along a dimension that no input has") {
  const auto backend = backend_under_test({.threads = 2});
  ScalarGraph graph;
  auto def = std::make_shared<Elementwise>(program_of(graph, {graph.of_input(0)}), std::vector{DType::float32});
  def->expanded = {{1, 6}};
  const Value x = random_value({4, 1, 3}, DType::float32, 1);
  const Value found = run_op(*backend, def, {x})[0];
  CHECK(found.type.shape == Shape{4, 6, 3});
  for (std::size_t i = 0; i < 72; ++i) CHECK(found.values[i] == x.values[i / 18 * 3 + i % 3]);
}

TEST_CASE("sums and extremes over dimensions") {
  const auto backend = backend_under_test({.threads = 2});
  const DType dtype = GENERATE(DType::float32, DType::bfloat16);
  struct Case {
    Shape x;
    int begin, end;
  };
  const Case cases[] = {{{3, 4, 5}, 1, 2},     {{3, 4, 5}, 0, 1},     {{3, 4, 5}, 2, 3}, {{3, 4, 5}, 0, 3},
                        {{3, 4, 5}, 1, 1},     {{2, 30'001}, 1, 2},   {{50, 300}, 0, 1}, {{4, 1}, 1, 2},
                        {{7, 9, 1}, 0, 2},     {{2, 20, 3, 7}, 1, 3}, {{40'000}, 0, 1},  {{20'000, 3}, 0, 1},
                        {{2, 9000, 130}, 1, 2}};
  for (const Case& of : cases) {
    for (const ReduceKind kind : {ReduceKind::sum, ReduceKind::maximum, ReduceKind::minimum}) {
      CAPTURE(to_string(of.x), of.begin, of.end, static_cast<int>(kind));
      const Value x = random_value(of.x, dtype, 5);
      std::int64_t outer = 1, count = 1, inner = 1;
      for (int axis = 0; axis < static_cast<int>(of.x.rank()); ++axis) {
        (axis < of.begin ? outer : axis < of.end ? count : inner) *= of.x[axis];
      }
      std::vector<double> results;
      for (std::int64_t o = 0; o < outer; ++o) {
        for (std::int64_t i = 0; i < inner; ++i) {
          double result = kind == ReduceKind::sum ? 0 : x.values[static_cast<std::size_t>(o * count * inner + i)];
          for (std::int64_t k = 0; k < count; ++k) {
            const double value = x.values[static_cast<std::size_t>((o * count + k) * inner + i)];
            if (kind == ReduceKind::sum) result += 0.5 * value;
            if (kind == ReduceKind::maximum) result = std::max(result, value);
            if (kind == ReduceKind::minimum) result = std::min(result, value);
          }
          results.push_back(result);
        }
      }
      auto def = std::make_shared<Reduce>(kind, of.begin, of.end);
      if (kind == ReduceKind::sum) def->scale = 0.5f;
      const Value found = run_op(*backend, def, {x})[0];
      CHECK(largest_error(found, results) < 1e-5);
      def->keep = true;
      CHECK(run_op(*backend, def, {x})[0].values == found.values);
      if (kind != ReduceKind::sum) continue;
      def->accumulate = true;
      const Value before = random_value(def->outputs(std::vector{x.type})[0].shape, DType::float32, 8);
      for (std::size_t i = 0; i < results.size(); ++i) results[i] += before.values[i];
      CHECK(largest_error(run_op(*backend, def, {x}, {before})[0], results) < 1e-5);
    }
  }
}

TEST_CASE("an extreme of values with NaN is NaN") {
  const auto backend = backend_under_test({.threads = 1});
  for (const std::size_t at : {0u, 5u, 40u, 69u}) {
    Value x = random_value({70}, DType::float32, 3);
    x.values[at] = std::numeric_limits<double>::quiet_NaN();
    for (const ReduceKind kind : {ReduceKind::maximum, ReduceKind::minimum}) {
      CHECK(std::isnan(run_op(*backend, std::make_shared<Reduce>(kind, 0, 1), {x})[0].values[0]));
    }
  }
}

}  // namespace trainctl::test::expression_ops_test
