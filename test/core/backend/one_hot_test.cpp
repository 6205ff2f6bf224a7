// Compares rows of class numbers with their definition.
#include "core/graph/ops/one_hot.h"

#include "test/catch.h"
#include "test/core/backend/run_op.h"

namespace trainctl::test::one_hot_test {

TEST_CASE("a class number is a row with 1 at the class, and with only zeros if it is no class") {
  const auto backend = backend_under_test({.threads = 2});
  for (const std::int64_t classes : {1, 5, 300}) {
    Value numbers = random_integers({19, 7}, DType::int32, 1, classes);
    numbers.values[3] = -100;
    numbers.values[11] = static_cast<double>(classes);
    std::vector<double> expected;
    for (const double number : numbers.values) {
      for (std::int64_t k = 0; k < classes; ++k) expected.push_back(number == static_cast<double>(k) ? 1 : 0);
    }
    const Value rows = run_op(*backend, std::make_shared<OneHot>(classes), {numbers})[0];
    CHECK(rows.type == TensorType{{19, 7, classes}, DType::float32});
    CHECK(rows.values == expected);
  }
}

}  // namespace trainctl::test::one_hot_test
