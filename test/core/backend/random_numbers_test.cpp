// Compares random numbers with the words of Philox, and normal numbers with the distribution function.
#include "core/graph/ops/elementwise/random_numbers.h"

#include <cmath>

#include "core/base/random.h"
#include "test/catch.h"
#include "test/core/backend/run_op.h"

namespace trainctl::test::random_numbers_test {
namespace {

const std::vector<double> sample_numbers = {11, 0, 8'589'934'597, 3};

std::vector<Value> inputs_at(double step) {
  return {random_value({4, 2}, DType::float32, 1), {{{4}, DType::int64}, sample_numbers}, {{{}, DType::int64}, {step}}};
}

// The upper 24 bits of the words, as a number in [0, 1).
std::vector<double> uniform_numbers(std::uint32_t step, std::int64_t count) {
  const RandomKey key{0x123456789u, Purpose::numbers, step, 77};
  std::vector<double> numbers;
  for (const double sample : sample_numbers) {
    for (std::int64_t e = 0; e < count; ++e) {
      const PhiloxBlock block = key.block(static_cast<std::uint64_t>(sample), static_cast<std::uint32_t>(e / 4));
      numbers.push_back((block[static_cast<std::size_t>(e % 4)] >> 8) * 0x1p-24);
    }
  }
  return numbers;
}

}  // namespace

TEST_CASE("random numbers are functions of seed, step, sample and element") {
  const auto backend = backend_under_test({.threads = 2});
  const DType dtype = GENERATE(DType::float32, DType::bfloat16);
  const Shape sample{5, 67};
  const std::vector<double> uniform = uniform_numbers(9, sample.count());
  const double precision = dtype == DType::float32 ? 1e-6 : 4e-3;
  const auto draw = [&](RandomNumbers::Kind of, double step) {
    return run_op(*backend, std::make_shared<RandomNumbers>(of, sample, dtype, 0x123456789u, 77u), inputs_at(step))[0];
  };
  const Value found = draw(RandomNumbers::Kind::uniform, 9), normal = draw(RandomNumbers::Kind::normal, 9);
  CHECK(found.type == TensorType{{4, 5, 67}, dtype});
  CHECK(largest_error(found, uniform) < precision);
  CHECK(draw(RandomNumbers::Kind::uniform, 10).values != found.values);
  double sum = 0, squares = 0;
  for (std::size_t i = 0; i < uniform.size(); ++i) {
    const double z = normal.values[i];
    CHECK(0.5 * std::erfc(-z / std::sqrt(2.0)) == Approx(uniform[i] + 0x1p-25).margin(2 * precision));
    sum += z;
    squares += z * z;
  }
  const auto count = static_cast<double>(uniform.size());
  CHECK(std::abs(sum / count) < 0.1);
  CHECK(squares / count == Approx(1).margin(0.15));
}

}  // namespace trainctl::test::random_numbers_test
