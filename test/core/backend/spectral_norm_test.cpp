// Compares spectral normalisation with its definition in float64.
#include "core/graph/ops/training/spectral_norm.h"

#include <cmath>

#include "test/catch.h"
#include "test/core/backend/run_op.h"

namespace trainctl::test::spectral_norm_test {
namespace {

void normalize(std::vector<double>& x) {
  double squares = 0;
  for (const double value : x) squares += value * value;
  for (double& value : x) value /= std::sqrt(squares);
}

// Sets kernel and u to their values after the op.
void normalize_kernel(std::vector<double>& kernel, std::vector<double>& u, int iterations) {
  const std::size_t columns = u.size(), rows = kernel.size() / columns;
  std::vector<double> v(rows);
  double sigma = 0;
  for (int i = 0; i < iterations; ++i) {
    for (std::size_t r = 0; r < rows; ++r) {
      v[r] = 0;
      for (std::size_t c = 0; c < columns; ++c) v[r] += kernel[r * columns + c] * u[c];
    }
    normalize(v);
    std::vector<double> product(columns);
    for (std::size_t r = 0; r < rows; ++r) {
      for (std::size_t c = 0; c < columns; ++c) product[c] += v[r] * kernel[r * columns + c];
    }
    u = product;
    normalize(u);
    sigma = 0;
    for (std::size_t c = 0; c < columns; ++c) sigma += product[c] * u[c];
  }
  for (double& value : kernel) value /= sigma;
}

}  // namespace

TEST_CASE("kernels are divided by an estimate of their largest singular value") {
  const auto backend = backend_under_test({.threads = 2}), one = backend_under_test({.threads = 1});
  for (const Shape& shape : {Shape{3, 2, 7, 130}, Shape{5, 1}, Shape{1, 9}, Shape{2100, 33}}) {
    for (const int iterations : {1, 3}) {
      CAPTURE(to_string(shape), iterations);
      const Value kernel = random_value(shape, DType::float32, 1),
                  u = random_value({1, shape.back()}, DType::float32, 2);
      std::vector<double> expected = kernel.values, vector = u.values;
      normalize_kernel(expected, vector, iterations);
      const auto op = std::make_shared<SpectralNorm>(iterations);
      const std::vector<Value> got = run_op(*backend, op, {kernel, u});
      CHECK(largest_error(got[0], expected) < 1e-6);
      CHECK(largest_error(got[1], vector) < 1e-6);
      const std::vector<Value> in_place = run_op(*one, op, {kernel, u}, {}, nullptr, nullptr, OutputPlaces::in_place);
      CHECK(in_place[0].values == got[0].values);
      CHECK(in_place[1].values == got[1].values);
    }
  }
}

TEST_CASE("spectral normalisation does not change a kernel of zeros") {
  const auto backend = backend_under_test();
  const Value kernel{{{6, 4}, DType::float32}, std::vector<double>(24)}, u = random_value({1, 4}, DType::float32, 2);
  const std::vector<Value> got = run_op(*backend, std::make_shared<SpectralNorm>(2), {kernel, u});
  CHECK(got[0].values == kernel.values);
  CHECK(got[1].values == u.values);
}

}  // namespace trainctl::test::spectral_norm_test
