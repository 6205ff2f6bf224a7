// Compares the ops that compute new positions of a text, which begin at another position in each sample, with their
// definition.
#include "core/graph/ops/position_embedding.h"
#include "core/graph/ops/rotary.h"
#include "core/graph/ops/write_cache.h"
#include "test/catch.h"
#include "test/core/backend/run_op.h"

namespace trainctl::test::cache_test {
namespace {

constexpr std::int64_t samples = 3, positions = 11;
constexpr std::int64_t first_positions[] = {0, 4, 9};

Value starts() { return {{{samples}, DType::int32}, {0, 4, 9}}; }

// Calls visit(sample, step, position) for all rows of x [samples, steps, columns].
template <class Visit>
void each_row(std::int64_t steps, const Visit& visit) {
  for (std::int64_t n = 0; n < samples; ++n) {
    for (std::int64_t t = 0; t < steps; ++t) visit(n, t, first_positions[n] + t);
  }
}

}  // namespace

TEST_CASE("write_cache writes the rows of new positions and keeps all others") {
  const auto backend = backend_under_test({.threads = 2});
  const DType dtype = GENERATE(DType::float32, DType::bfloat16);
  const std::int64_t steps = GENERATE(1, 4), columns = GENERATE(5, 16);
  const Value x = random_value({samples, steps, columns}, dtype, 1);
  const Value before = random_value({samples, positions, columns}, dtype, 2);
  std::vector<double> expected = before.values;
  each_row(steps, [&](std::int64_t n, std::int64_t t, std::int64_t position) {
    if (position >= positions) return;  // the last sample reaches the end of the cache
    std::copy_n(x.values.begin() + (n * steps + t) * columns, columns,
                expected.begin() + (n * positions + position) * columns);
  });
  const auto cache = run_op(*backend, std::make_shared<WriteCache>(positions), {x, starts()}, {before});
  CHECK(cache[0].values == expected);
}

TEST_CASE("learned positions begin at the position of each sample") {
  const auto backend = backend_under_test({.threads = 2});
  const bool adds = GENERATE(false, true);
  const std::int64_t columns = GENERATE(3, 16);
  const Value x = random_value({samples, 4, columns}, DType::float32, 1);
  const Value table = random_value({positions, columns}, DType::float32, 2);
  std::vector<double> expected;
  each_row(4, [&](std::int64_t n, std::int64_t t, std::int64_t position) {
    const auto row = row_of(table, static_cast<std::size_t>(std::min(position, positions - 1)));
    for (std::int64_t c = 0; c < columns; ++c) {
      const double value = x.values[static_cast<std::size_t>((n * 4 + t) * columns + c)];
      expected.push_back((adds ? value : 0) + row[static_cast<std::size_t>(c)]);
    }
  });
  const auto y = run_op(*backend, std::make_shared<PositionEmbedding>(adds, true), {x, table, starts()});
  CHECK(largest_error(y[0], expected) < 1e-6);
}

TEST_CASE("rotary positions begin at the position of each sample") {
  const auto backend = backend_under_test({.threads = 2});
  const RotaryPairs pairs = GENERATE(RotaryPairs::halves, RotaryPairs::neighbours);
  const RotaryAttributes a{.head_size = 8, .width = 6, .pairs = pairs};
  const Value whole = random_value({samples, positions, 16}, DType::float32, 1);
  const auto rotated = run_op(*backend, std::make_shared<Rotary>(a), {whole});
  const auto def = std::make_shared<Rotary>(a);
  def->positions = positions;
  Value piece{{{samples, 2, 16}, DType::float32}, {}};
  std::vector<double> expected;
  each_row(2, [&](std::int64_t n, std::int64_t, std::int64_t position) {
    const auto row = static_cast<std::size_t>(n * positions + position);
    for (const double value : row_of(whole, row)) piece.values.push_back(value);
    for (const double value : row_of(rotated[0], row)) expected.push_back(value);
  });
  CHECK(largest_error(run_op(*backend, def, {piece, starts()})[0], expected) < 1e-6);
}

}  // namespace trainctl::test::cache_test
