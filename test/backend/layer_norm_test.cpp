// Layer normalisation at sizes whose sums are taken in parts, against its definition in float64.
#include <cmath>

#include "core/graph/ops/layer_norm.h"
#include "test/backend/run_op.h"
#include "test/catch.h"

using namespace trainctl;
using namespace trainctl::test;

namespace {

struct Expected {
  std::vector<double> y, dx, dgamma, dbeta;
};

Expected by_definition(const Value& x, const Value& dy, const Value& gamma, const Value& beta, double epsilon) {
  const auto n = static_cast<std::size_t>(x.type.shape.back()), rows = x.values.size() / n;
  Expected expected{std::vector<double>(x.values.size()), std::vector<double>(x.values.size()), std::vector<double>(n),
                    std::vector<double>(n)};
  for (std::size_t row = 0; row < rows; ++row) {
    const double *xs = &x.values[row * n], *dys = &dy.values[row * n];
    double mean = 0, variance = 0, sum = 0, along = 0;
    for (std::size_t k = 0; k < n; ++k) mean += xs[k] / static_cast<double>(n);
    for (std::size_t k = 0; k < n; ++k) variance += (xs[k] - mean) * (xs[k] - mean) / static_cast<double>(n);
    const double rstd = 1 / std::sqrt(variance + epsilon);
    for (std::size_t k = 0; k < n; ++k) {
      const double normal = (xs[k] - mean) * rstd, slope = dys[k] * gamma.values[k];
      expected.y[row * n + k] = gamma.values[k] * normal + beta.values[k];
      expected.dgamma[k] += dys[k] * normal;
      expected.dbeta[k] += dys[k];
      sum += slope / static_cast<double>(n);
      along += slope * normal / static_cast<double>(n);
    }
    for (std::size_t k = 0; k < n; ++k) {
      const double normal = (xs[k] - mean) * rstd;
      expected.dx[row * n + k] = rstd * (dys[k] * gamma.values[k] - sum - normal * along);
    }
  }
  return expected;
}

}  // namespace

TEST_CASE("layer normalisation and its gradient at every width, with the same bits for any number of threads") {
  const auto one = backend_under_test({.threads = 1}), two = backend_under_test({.threads = 2});
  for (const Shape& shape : {Shape{1300, 16}, Shape{70, 264}, Shape{3, 9000}, Shape{5, 7, 33}}) {
    const Shape channels{shape.back()};
    const Value x = random_value(shape, DType::float32, 1, -1, 3), dy = random_value(shape, DType::float32, 2);
    const Value gamma = random_value(channels, DType::float32, 3), beta = random_value(channels, DType::float32, 4);
    const LayerNormAttributes a{.epsilon = 1e-5f};
    const Expected expected = by_definition(x, dy, gamma, beta, static_cast<double>(a.epsilon));
    CAPTURE(to_string(shape));
    const auto forward = run_op(*one, std::make_shared<LayerNorm>(a), {x, gamma, beta});
    CHECK(largest_error(forward[0], expected.y) < 2e-6);
    const std::vector<Value> inputs{dy, x, gamma, forward[1], forward[2]};
    const std::vector<Value> before{x, random_value(channels, DType::float32, 5),
                                    random_value(channels, DType::float32, 6)};
    for (const bool add : {false, true}) {
      const auto def = std::make_shared<LayerNormGrad>(a, add);
      const auto got = run_op(*one, def, inputs, before);
      std::vector<double> dgamma = expected.dgamma, dbeta = expected.dbeta;
      for (std::size_t k = 0; add && k < dgamma.size(); ++k) {
        dgamma[k] += before[1].values[k];
        dbeta[k] += before[2].values[k];
      }
      CHECK(largest_error(got[0], expected.dx) < 1e-5);
      CHECK(largest_error(got[1], dgamma) < 2e-5);
      CHECK(largest_error(got[2], dbeta) < 2e-5);
      const auto again = run_op(*two, def, inputs, before);
      for (std::size_t i = 0; i < got.size(); ++i) CHECK(again[i].values == got[i].values);
    }
  }
}
