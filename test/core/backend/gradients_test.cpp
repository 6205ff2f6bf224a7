// Compares the centralization and the clipping of gradients with their definitions in float64.
#include "core/graph/ops/training/gradients.h"

#include <algorithm>
#include <cmath>

#include "test/catch.h"
#include "test/core/backend/run_op.h"

namespace trainctl::test::gradients_test {
namespace {

// A region with a vector, a matrix of many rows, a single column, a single row, and values that belong to no matrix.
constexpr std::int64_t elements = 60000;
const std::vector<GradientMatrix> matrices{{4, 1, 33}, {40, 300, 130}, {39040, 20001, 1}, {59044, 1, 500}};

Value gradients() { return random_value({elements}, DType::float32, 1, -30, 50); }

}  // namespace

TEST_CASE("centralized gradients have columns with the mean 0, and other elements stay") {
  const auto backend = backend_under_test({.threads = GENERATE(1, 2)});
  const Value gradient = gradients();
  std::vector<double> expected = gradient.values;
  for (const GradientMatrix& matrix : matrices) {
    for (std::int64_t c = 0; c < matrix.columns; ++c) {
      double sum = 0;
      const auto element = [&](std::int64_t r) -> double& {
        return expected[static_cast<std::size_t>(matrix.offset + r * matrix.columns + c)];
      };
      for (std::int64_t r = 0; r < matrix.rows; ++r) sum += element(r);
      const double mean = sum / static_cast<double>(matrix.rows);
      for (std::int64_t r = 0; r < matrix.rows; ++r) element(r) -= mean;
    }
  }
  const Value got = run_op(*backend, std::make_shared<CentralizeGradients>(matrices), {gradient})[0];
  CHECK(largest_error(got, expected) < 1e-6);
  CHECK(got.values[39] == gradient.values[39]);
  CHECK(got.values[elements - 1] == gradient.values[elements - 1]);
}

TEST_CASE("gradients are clipped by the norm of each parameter, and the bits do not depend on the number of threads") {
  const auto one = backend_under_test({.threads = 1}), two = backend_under_test({.threads = 2});
  const Value gradient = gradients();
  constexpr double count = 8;
  const float bound = 20;  // between the norms of the small and of the large gradients
  std::vector<double> expected = gradient.values;
  int clipped = 0;
  for (const GradientMatrix& matrix : matrices) {
    const auto begin = expected.begin() + matrix.offset, end = begin + matrix.count();
    double squares = 0;
    for (auto value = begin; value != end; ++value) squares += *value * *value;
    const double norm = std::sqrt(squares) / count;
    clipped += norm > static_cast<double>(bound) ? 1 : 0;
    for (auto value = begin; value != end; ++value) *value *= bound / std::max(norm, static_cast<double>(bound));
  }
  CHECK(clipped > 0);
  CHECK(clipped < 4);
  const auto op = std::make_shared<ClipGradients>(matrices, bound, 0.0f);
  const Value got = run_op(*one, op, {gradient, scalar(count)})[0];
  CHECK(largest_error(got, expected) < 1e-6);
  CHECK(run_op(*two, op, {gradient, scalar(count)})[0].values == got.values);
  CHECK(run_op(*one, op, {gradient, scalar(0)})[0].values == gradient.values);
}

TEST_CASE("gradients are clipped by the value of each element") {
  const auto backend = backend_under_test({.threads = 2});
  const Value gradient = gradients();
  std::vector<double> expected = gradient.values;
  for (const GradientMatrix& matrix : matrices) {
    const auto begin = expected.begin() + matrix.offset;
    std::for_each(begin, begin + matrix.count(), [](double& value) { value = std::clamp(value, -16.0, 16.0); });
  }
  const auto op = std::make_shared<ClipGradients>(matrices, 0.0f, 2.0f);
  CHECK(run_op(*backend, op, {gradient, scalar(8)})[0].values == expected);
  CHECK(run_op(*backend, op, {gradient, scalar(0)})[0].values == gradient.values);
}

}  // namespace trainctl::test::gradients_test
