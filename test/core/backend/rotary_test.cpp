// Compares rotary position embedding with its definition in float64, at positions far from the beginning.
#include "core/graph/ops/rotary.h"

#include <cmath>

#include "test/catch.h"
#include "test/core/backend/run_op.h"

namespace trainctl::test::rotary_test {
namespace {

// Document numbers of [samples, steps] that change at different steps in each sample.
Value documents_of(std::int64_t samples, std::int64_t steps) {
  Value documents{{{samples, steps}, DType::int32}, {}};
  for (std::int64_t n = 0; n < samples; ++n) {
    for (std::int64_t t = 0; t < steps; ++t)
      documents.values.push_back(static_cast<double>((t + 7 * n) / (300 + 41 * n)));
  }
  return documents;
}

// The position of each step in its document; `documents` may be empty.
std::int64_t position_of(const Value& documents, std::int64_t row, std::int64_t t) {
  if (documents.values.empty()) return t;
  std::int64_t position = 0;
  while (position < t && documents.values[static_cast<std::size_t>(row - position - 1)] ==
                             documents.values[static_cast<std::size_t>(row)]) {
    ++position;
  }
  return position;
}

std::vector<double> by_definition(const Value& x, const Value& documents, const RotaryAttributes& a) {
  std::vector<double> y = x.values;
  const std::int64_t steps = x.type.shape[1], columns = x.type.shape[2], pairs = a.width / 2;
  for (std::int64_t row = 0; row < x.type.shape.rows(); ++row) {
    const auto position = static_cast<double>(position_of(documents, row, row % steps));
    for (std::int64_t head = 0; head < columns; head += a.head_size) {
      for (std::int64_t i = 0; i < pairs; ++i) {
        const bool neighbours = a.pairs == RotaryPairs::neighbours;
        const auto first = static_cast<std::size_t>(row * columns + head + (neighbours ? 2 * i : i));
        const std::size_t second = first + (neighbours ? 1 : static_cast<std::size_t>(pairs));
        const double angle = position * std::pow(a.base, -2.0 * static_cast<double>(i) / static_cast<double>(a.width));
        y[first] = x.values[first] * std::cos(angle) - x.values[second] * std::sin(angle);
        y[second] = x.values[first] * std::sin(angle) + x.values[second] * std::cos(angle);
      }
    }
  }
  return y;
}

}  // namespace

TEST_CASE("rotary positions are exact far from the beginning, in place or not, and backwards undoes them") {
  const auto one = backend_under_test({.threads = 1}), two = backend_under_test({.threads = 2});
  struct Case {
    Shape shape;
    std::int64_t head_size, width;
    RotaryPairs pairs;
  };
  for (const auto& [shape, head_size, width, pairs] :
       {Case{{1, 3000, 32}, 16, 16, RotaryPairs::halves}, Case{{2, 700, 30}, 10, 6, RotaryPairs::halves},
        Case{{2, 650, 32}, 16, 16, RotaryPairs::neighbours}, Case{{2, 610, 14}, 7, 6, RotaryPairs::neighbours}}) {
    const RotaryAttributes a{.head_size = head_size, .width = width, .pairs = pairs};
    CAPTURE(to_string(shape), head_size);
    const Value x = random_value(shape, DType::float32, 1);
    for (const bool documents : {false, true}) {
      const Value numbers = documents ? documents_of(shape[0], shape[1]) : Value{};
      const auto inputs = [&](const Value& values) {
        return documents ? std::vector<Value>{values, numbers} : std::vector<Value>{values};
      };
      const auto def = std::make_shared<Rotary>(a);
      const auto got = run_op(*one, def, inputs(x));
      CHECK(largest_error(got[0], by_definition(x, numbers, a)) < 1e-6);
      CHECK(run_op(*two, def, inputs(x), {}, nullptr, nullptr, OutputPlaces::in_place)[0].values == got[0].values);
      const auto back = run_op(*one, std::make_shared<Rotary>(a, true), inputs(got[0]));
      CHECK(largest_error(back[0], x.values) < 1e-6);
    }
  }
}

TEST_CASE("rotary positions of bfloat16 values are rounded once") {
  const auto backend = backend_under_test({.threads = 2});
  const RotaryAttributes a{.head_size = 16, .width = 16};
  const Value x = random_value({2, 300, 32}, DType::bfloat16, 1);
  const auto got = run_op(*backend, std::make_shared<Rotary>(a), {x});
  CHECK(largest_error(got[0], by_definition(x, {}, a)) < 4e-3);
}

}  // namespace trainctl::test::rotary_test
