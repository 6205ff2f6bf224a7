// Compares parametric ReLU with its definition in float64, at sizes whose sums are computed in pieces.
#include "core/graph/ops/elementwise/prelu.h"
#include "test/catch.h"
#include "test/core/backend/run_op.h"

namespace trainctl::test::prelu_test {

TEST_CASE("parametric ReLU and its gradients follow the definition, with the same bits for any number of threads") {
  const auto one = backend_under_test({.threads = 1}), two = backend_under_test({.threads = 2});
  const DType dtype = GENERATE(DType::float32, DType::bfloat16);
  struct Sizes {
    Shape shape, alpha;
  };
  for (const auto& [shape, alphas] : {Sizes{{6, 60, 61, 3}, {1, 1, 3}}, Sizes{{5, 44, 40, 24}, {1, 1, 24}},
                                      Sizes{{70, 12, 14, 9}, {12, 14, 9}}, Sizes{{130, 300}, {300}}}) {
    const bool shared = alphas[0] == 1;
    const Value x = random_value(shape, dtype, 1), dy = random_value(shape, dtype, 2);
    const Value alpha = random_value(alphas, DType::float32, 3), before = random_value(alphas, DType::float32, 4);
    std::vector<double> y = x.values, dx = dy.values, dalpha(alpha.values.size());
    for (std::size_t i = 0; i < y.size(); ++i) {
      const std::size_t k = i % alpha.values.size();
      if (x.values[i] > 0) continue;
      y[i] *= alpha.values[k];
      dx[i] *= alpha.values[k];
      dalpha[k] += dy.values[i] * x.values[i];
    }
    CAPTURE(to_string(shape), name_of(dtype));
    const double tolerance = dtype == DType::float32 ? 1e-6 : 4e-3;
    const auto def = std::make_shared<PRelu>(shared);
    const auto forward = run_op(*one, def, {x, alpha});
    CHECK(largest_error(forward[0], y) < tolerance);
    const auto in_place = run_op(*two, def, {x, alpha}, {}, nullptr, nullptr, OutputPlaces::in_place);
    CHECK(in_place[0].values == forward[0].values);
    for (const bool add : {false, true}) {
      const auto grad = std::make_shared<PReluGrad>(shared, add);
      const auto got = run_op(*one, grad, {dy, x, alpha}, {x, before});
      std::vector<double> sums = dalpha;
      for (std::size_t k = 0; add && k < sums.size(); ++k) sums[k] += before.values[k];
      CHECK(largest_error(got[0], dx) < tolerance);
      CHECK(largest_error(got[1], sums) < 2e-5);
      const auto again = run_op(*two, grad, {dy, x, alpha}, {x, before}, nullptr, nullptr, OutputPlaces::in_place);
      for (std::size_t i = 0; i < got.size(); ++i) CHECK(again[i].values == got[i].values);
    }
  }
}

}  // namespace trainctl::test::prelu_test
