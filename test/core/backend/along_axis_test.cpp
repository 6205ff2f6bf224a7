// Compares flips, cumulative sums and numbered elements with their definitions.
#include "core/graph/ops/along_axis.h"

#include "core/graph/ops/arange.h"
#include "core/graph/ops/cumsum.h"
#include "core/graph/ops/reshaping/flip.h"
#include "test/catch.h"
#include "test/core/backend/run_op.h"

namespace trainctl::test::along_axis_test {
namespace {

struct Case {
  Shape shape;
  int axis;
};
const Case cases[] = {{{5}, 0},         {{3, 1, 4}, 1},     {{7, 300}, 1},     {{7, 300}, 0},
                      {{2, 9, 130}, 1}, {{2, 3, 50, 4}, 2}, {{3, 4, 5, 6}, 0}, {{700, 33}, 0}};

std::size_t at(const AxisView& view, std::int64_t outer, std::int64_t i, std::int64_t inner) {
  return static_cast<std::size_t>((outer * view.count + i) * view.inner + inner);
}

}  // namespace

TEST_CASE("a flip has the elements in the opposite order") {
  const DType dtype = GENERATE(DType::float32, DType::bfloat16, DType::float16);
  const auto backend = backend_under_test({.threads = 2});
  if (!backend->computes_in(dtype)) return;
  for (const Case& of : cases) {
    CAPTURE(to_string(of.shape), of.axis, name_of(dtype));
    const Value x = random_value(of.shape, dtype, 1);
    const Value y = run_op(*backend, std::make_shared<Flip>(of.axis), {x})[0];
    const AxisView view = view_along(of.shape, of.axis);
    CHECK(y.type == x.type);
    bool equal = true;
    for (std::int64_t o = 0; o < view.outer; ++o) {
      for (std::int64_t i = 0; i < view.count; ++i) {
        for (std::int64_t k = 0; k < view.inner; ++k) {
          equal = equal && y.values[at(view, o, i, k)] == x.values[at(view, o, view.count - 1 - i, k)];
        }
      }
    }
    CHECK(equal);
  }
}

TEST_CASE("cumulative sums are those of float64, in both directions") {
  const DType dtype = GENERATE(DType::float32, DType::bfloat16, DType::float16);
  const bool reverse = GENERATE(false, true);
  const auto backend = backend_under_test({.threads = 2});
  if (!backend->computes_in(dtype)) return;
  for (const Case& of : cases) {
    CAPTURE(to_string(of.shape), of.axis, reverse, name_of(dtype));
    const Value x = random_value(of.shape, dtype, 1);
    const Value y = run_op(*backend, std::make_shared<CumulativeSum>(of.axis, reverse), {x})[0];
    const AxisView view = view_along(of.shape, of.axis);
    std::vector<double> expected(x.values.size());
    for (std::int64_t o = 0; o < view.outer; ++o) {
      for (std::int64_t k = 0; k < view.inner; ++k) {
        double sum = 0;
        for (std::int64_t n = 0; n < view.count; ++n) {
          const std::int64_t i = reverse ? view.count - 1 - n : n;
          sum += x.values[at(view, o, i, k)];
          expected[at(view, o, i, k)] = round_to(dtype, static_cast<double>(static_cast<float>(sum)));
        }
      }
    }
    CHECK(y.type == x.type);
    CHECK(y.values == expected);
  }
}

TEST_CASE("arange numbers elements from 0 on") {
  const auto backend = backend_under_test({.threads = 2});
  for (const std::int64_t count : {1, 7, 70000}) {
    const Value y = run_op(*backend, std::make_shared<Arange>(count), {})[0];
    CHECK(y.type == TensorType{{count}, DType::float32});
    bool equal = true;
    for (std::size_t i = 0; i < y.values.size(); ++i) equal = equal && y.values[i] == static_cast<double>(i);
    CHECK(equal);
  }
}

}  // namespace trainctl::test::along_axis_test
