// Compares the gradient of an embedding with its definition in float64, for many tokens, frequent ones and unknown
// ones.
#include "core/graph/ops/embedding.h"

#include <cmath>

#include "test/catch.h"
#include "test/core/backend/run_op.h"

namespace trainctl::test::embedding_test {
namespace {

struct Sizes {
  std::int64_t tokens, rows, channels;
};

// Random tokens, half of which are a frequent one, with some that are not in the table.
Value tokens_of(const Sizes& sizes) {
  Value tokens = random_integers({sizes.tokens}, DType::int32, 1, 2 * sizes.rows);
  for (std::size_t i = 0; i < tokens.values.size(); ++i) {
    double& token = tokens.values[i];
    if (token >= static_cast<double>(sizes.rows)) token = static_cast<double>(sizes.rows / 2);
    if (i % 97 == 13) token = -1 - static_cast<double>(i);
    if (i % 89 == 7) token = static_cast<double>(sizes.rows) + static_cast<double>(i % 3);
  }
  return tokens;
}

std::vector<double> by_definition(const Value& tokens, const Value& dy, const Sizes& sizes) {
  std::vector<double> table(static_cast<std::size_t>(sizes.rows * sizes.channels));
  for (std::size_t i = 0; i < tokens.values.size(); ++i) {
    const auto row = static_cast<std::int64_t>(tokens.values[i]);
    if (row < 0 || row >= sizes.rows) continue;
    for (std::int64_t c = 0; c < sizes.channels; ++c) {
      table[static_cast<std::size_t>(row * sizes.channels + c)] +=
          dy.values[i * static_cast<std::size_t>(sizes.channels) + static_cast<std::size_t>(c)];
    }
  }
  return table;
}

}  // namespace

TEST_CASE("the gradient of an embedding sums the tokens of each row, with the same bits for any number of threads") {
  const auto one = backend_under_test({.threads = 1}), two = backend_under_test({.threads = 2});
  for (const Sizes& sizes : {Sizes{1, 3, 8}, Sizes{31, 2, 5}, Sizes{300, 40, 24}, Sizes{5000, 300, 33},
                             Sizes{4200, 70'000, 4}, Sizes{2100, 1, 300}}) {
    CAPTURE(sizes.tokens, sizes.rows, sizes.channels);
    const Value tokens = tokens_of(sizes);
    for (const DType dtype : {DType::float32, DType::bfloat16}) {
      const Value dy = random_value({sizes.tokens, sizes.channels}, dtype, 2);
      const Value before = random_value({sizes.rows, sizes.channels}, DType::float32, 3);
      std::vector<double> expected = by_definition(tokens, dy, sizes);
      for (const bool add : {false, true}) {
        const auto def = std::make_shared<EmbeddingGrad>(sizes.rows, add);
        for (std::size_t k = 0; add && k < expected.size(); ++k) expected[k] += before.values[k];
        const auto got = run_op(*one, def, {tokens, dy}, {before});
        CHECK(largest_error(got[0], expected) < 2e-5);
        CHECK(run_op(*two, def, {tokens, dy}, {before})[0].values == got[0].values);
      }
    }
  }
}

TEST_CASE("look-ups in the rows of several ranks add up to the look-up in the whole table") {
  const auto backend = backend_under_test({.threads = 2});
  const Sizes sizes{500, 43, 12};
  const Value tokens = tokens_of(sizes), table = random_value({sizes.rows, sizes.channels}, DType::float32, 4);
  const Value dy = random_value({sizes.tokens, sizes.channels}, DType::float32, 5);
  const auto whole = run_op(*backend, std::make_shared<Embedding>(DType::float32), {tokens, table})[0].values;
  const Value gradient = run_op(*backend, std::make_shared<EmbeddingGrad>(sizes.rows, false), {tokens, dy})[0];
  std::vector<double> sum(whole.size()), gradients;
  for (ShardPosition rank{4, 0}; rank.index < rank.count; ++rank.index) {
    const std::int64_t rows = rank.size_of(sizes.rows);
    const ColumnRange range{rank.first_of(sizes.rows), sizes.rows};
    Value held{{{rows, sizes.channels}, DType::float32}, {}};
    const auto begin = table.values.begin() + range.first * sizes.channels;
    held.values.assign(begin, begin + rows * sizes.channels);
    const auto part = run_op(*backend, std::make_shared<Embedding>(DType::float32, range), {tokens, held})[0].values;
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += part[i];
    const auto own = run_op(*backend, std::make_shared<EmbeddingGrad>(rows, false, range), {tokens, dy})[0].values;
    gradients.insert(gradients.end(), own.begin(), own.end());
  }
  CHECK(largest_error(gradient, gradients) < 1e-5);  // the order of sums may depend on the rows
  for (std::size_t i = 0; i < sum.size(); ++i) {
    CAPTURE(i);
    CHECK((sum[i] == whole[i] || (std::isnan(sum[i]) && std::isnan(whole[i]))));  // NaN for unknown tokens
  }
}

}  // namespace trainctl::test::embedding_test
