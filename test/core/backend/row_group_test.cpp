// Compares ops that run together, row by row, with the same ops one after the other.
#include "core/graph/ops/row_group.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/expression/scalar_graph.h"
#include "core/graph/ops/elementwise/elementwise.h"
#include "core/graph/ops/reduce.h"
#include "test/catch.h"
#include "test/core/backend/run_op.h"

namespace trainctl::test::row_group_test {
namespace {

using enum ScalarFunction;

std::shared_ptr<const Elementwise> elementwise(ScalarGraph& graph, const std::vector<int>& results, DType dtype) {
  return std::make_shared<Elementwise>(graph.program(results), std::vector(results.size(), dtype));
}

std::shared_ptr<Reduce> reduce(ReduceKind kind, int begin, int end, float scale, DType dtype) {
  auto def = std::make_shared<Reduce>(kind, begin, end);
  def->keep = true;
  def->scale = scale;
  def->dtype = dtype;
  return def;
}

// Normalises rows, which are the dimensions from `begin` on, finds the largest square of each row, and adds the
// products of x and y: over all rows, or over each row if it has one value, and over each row. Inputs: x, gamma, and a
// number for each row. Outputs: y, the largest squares and the sums of products.
RowGroup normalisation(const Shape& x, int begin, DType dtype) {
  std::int64_t count = 1;
  for (std::int64_t d = begin; d < x.rank(); ++d) count *= x[d];
  const auto rank = static_cast<int>(x.rank());
  const float scale = 1.0f / static_cast<float>(count);
  ScalarGraph squares, roots, scaled;
  const int d = squares.apply(subtract, squares.of_input(0), squares.of_input(1));
  const int root = roots.apply(rsqrt, roots.apply(add, roots.of_input(0), roots.of_constant(0.001)));
  const int normal =
      scaled.apply(multiply, scaled.apply(subtract, scaled.of_input(0), scaled.of_input(1)), scaled.of_input(2));
  const int y = scaled.apply(add, scaled.apply(multiply, normal, scaled.of_input(3)), scaled.of_input(4));
  ScalarGraph products;
  const int product = products.apply(multiply, products.of_input(0), products.of_input(1));
  const auto [first, last] = count > 1 ? std::pair(0, begin) : std::pair(begin, rank);
  RowGroup group;
  group.row_dimensions = begin;
  group.inputs_count = 3;
  group.outputs_count = 4;
  group.ops = {{reduce(ReduceKind::sum, begin, rank, scale, DType::float32), {0}, {7}},
               {elementwise(squares, {squares.apply(multiply, d, d)}, dtype), {0, 7}, {8}},
               {reduce(ReduceKind::sum, begin, rank, scale, DType::float32), {8}, {9}},
               {elementwise(roots, {root}, DType::float32), {9}, {10}},
               {elementwise(scaled, {y}, dtype), {0, 7, 10, 1, 2}, {3}},
               {reduce(ReduceKind::maximum, begin, rank, 1, dtype), {8}, {4}},
               {elementwise(products, {product}, DType::float32), {0, 3}, {11}},
               {reduce(ReduceKind::sum, first, last, 1.5f, DType::float32), {11}, {5}},
               {reduce(ReduceKind::sum, begin, rank, 1, DType::float32), {11}, {6}}};
  return group;
}

// Runs the ops one after the other.
std::vector<Value> run_apart(Backend& backend, const RowGroup& group, const std::vector<Value>& inputs) {
  std::vector<Value> tensors = inputs;
  for (const SubOp& of : group.ops) {
    std::vector<Value> read;
    for (const int number : of.inputs) read.push_back(tensors.at(static_cast<std::size_t>(number)));
    const std::vector<Value> written = run_op(backend, of.def, read);
    for (std::size_t i = 0; i < written.size(); ++i) {
      tensors.resize(std::max(tensors.size(), static_cast<std::size_t>(of.outputs[i]) + 1));
      tensors[static_cast<std::size_t>(of.outputs[i])] = written[i];
    }
  }
  return {tensors.begin() + group.inputs_count, tensors.begin() + group.inputs_count + group.outputs_count};
}

}  // namespace

TEST_CASE("ops that run together row by row have the bits of the ops one after the other") {
  const DType dtype = GENERATE(DType::float32, DType::bfloat16);
  struct Case {
    Shape x, gamma, number;
    int begin;
  };
  const Case cases[] = {{{5, 2048}, {2048}, {5, 1}, 1},
                        {{700, 33}, {33}, {700, 1}, 1},
                        {{3, 7, 50}, {7, 1}, {3, 1, 1}, 1},
                        {{3, 7, 50}, {50}, {3, 7, 1}, 2},
                        {{2, 4, 100}, {1}, {2, 4, 100}, 2},
                        {{9000, 1}, {1}, {9000, 1}, 1},
                        {{13, 8192}, {1, 8192}, {13, 1}, 1},
                        {{64, 600}, {600}, {64, 1}, 1},
                        // the values of a row are computed in parts whose lengths are no multiples of 32
                        {{2, 3, 40, 20}, {3, 1, 20}, {2, 1, 1, 1}, 1}};
  for (const Case& of : cases) {
    CAPTURE(to_string(of.x), to_string(of.gamma), of.begin);
    const std::vector<Value> inputs{random_value(of.x, dtype, 1, -2, 3), random_value(of.gamma, DType::float32, 2),
                                    random_value(of.number, DType::float32, 3)};
    const RowGroup group = normalisation(of.x, of.begin, dtype);
    std::vector<Value> expected;
    for (const int threads : {1, 3}) {
      const auto backend = backend_under_test({.threads = threads});
      if (threads == 1) expected = run_apart(*backend, group, inputs);
      const auto found = run_op(*backend, std::make_shared<RowGroup>(group), inputs);
      for (std::size_t i = 0; i < expected.size(); ++i) CHECK(found[i].values == expected[i].values);
    }
    // By hand, for the first row.
    const auto count = static_cast<std::size_t>(of.x.count() / expected[1].type.shape.count());
    double mean = 0, variance = 0;
    for (std::size_t i = 0; i < count; ++i) mean += inputs[0].values[i] / static_cast<double>(count);
    for (std::size_t i = 0; i < count; ++i) {
      const double difference = inputs[0].values[i] - mean;
      variance += difference * difference / static_cast<double>(count);
    }
    const double first = (inputs[0].values[0] - mean) / std::sqrt(variance + 0.001);
    const double y = first * inputs[1].values[0] + inputs[2].values[0];
    CHECK(expected[0].values[0] == Approx(y).epsilon(dtype == DType::float32 ? 1e-4 : 0.03).margin(0.02));
  }
}

}  // namespace trainctl::test::row_group_test
