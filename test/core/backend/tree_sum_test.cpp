// Compares sums in the order of a tree with their definition, bit for bit.
#include "core/graph/ops/training/tree_sum.h"

#include <algorithm>

#include "core/graph/ops/training/update.h"
#include "test/catch.h"
#include "test/core/backend/run_op.h"

namespace trainctl::test::tree_sum_test {
namespace {

// Values of very different sizes, whose sum depends on the order.
Value summands(std::int64_t count, std::uint64_t seed) {
  Value value = random_value({count}, DType::float32, seed, -1, 1);
  for (std::size_t i = 0; i < value.values.size(); i += 3) value.values[i] *= 4096;
  for (double& v : value.values) v = static_cast<float>(v);
  return value;
}

}  // namespace

TEST_CASE("the summands of a tree are added in its order") {
  const auto backend = backend_under_test();
  // The fourth is ((0 + 1) + (2 + 3)) + (4 + 5); the last one adds all summands from the right.
  const std::vector<std::vector<int>> orders{{0}, {0, 1}, {0, 1, 0, 2}, {0, 1, 0, 2, 0, 2}, {0, 0, 0, 3}};
  for (const std::vector<int>& merges : orders) {
    for (const std::int64_t count : {1, 5, 1023, 40001}) {
      CAPTURE(merges, count);
      const auto terms = static_cast<int>(merges.size());
      for (const int parts : {1, terms}) {  // each summand is an input, or all are parts of one input
        std::vector<Value> inputs;
        if (parts == 1) {
          for (int i = 0; i < terms; ++i) inputs.push_back(summands(count, static_cast<std::uint64_t>(i) + 7));
        } else {
          inputs.push_back(summands(count * terms, 5));
        }
        std::vector<Summand> order;
        for (int i = 0; i < terms; ++i) {
          order.push_back(parts == 1 ? Summand{i, 0, merges[static_cast<std::size_t>(i)]}
                                     : Summand{0, i, merges[static_cast<std::size_t>(i)]});
        }
        const Value sum = run_op(*backend, std::make_shared<TreeSum>(order, parts), inputs)[0];
        REQUIRE(sum.type == TensorType{{count}, DType::float32});
        for (std::int64_t e = 0; e < count; ++e) {
          std::vector<float> stack;
          for (int i = 0; i < terms; ++i) {
            const Value& from = inputs[parts == 1 ? static_cast<std::size_t>(i) : 0];
            stack.push_back(static_cast<float>(from.values[static_cast<std::size_t>(parts == 1 ? e : i * count + e)]));
            for (int merge = 0; merge < merges[static_cast<std::size_t>(i)]; ++merge) {
              const float right = stack.back();
              stack.pop_back();
              stack.back() += right;
            }
          }
          REQUIRE(sum.values[static_cast<std::size_t>(e)] == stack[0]);
        }
      }
    }
  }
}

TEST_CASE("inputs without parts are added to parts of the last input, in the given order") {
  const auto backend = backend_under_test();
  for (const std::int64_t count : {1, 1023, 40001}) {
    CAPTURE(count);
    const std::vector<Value> inputs{summands(count, 3), summands(count, 4), summands(3 * count, 5)};
    // (0 + (1 + part 0)) + (part 1 + part 2)
    const std::vector<Summand> order{{0, 0, 0}, {1, 0, 0}, {2, 0, 2}, {2, 1, 0}, {2, 2, 2}};
    const Value sum = run_op(*backend, std::make_shared<TreeSum>(order, 3), inputs)[0];
    REQUIRE(sum.type == TensorType{{count}, DType::float32});
    for (std::int64_t e = 0; e < count; ++e) {
      const auto at = [&](std::size_t input, std::int64_t part) {
        return static_cast<float>(inputs[input].values[static_cast<std::size_t>(part * count + e)]);
      };
      const float left = at(0, 0) + (at(1, 0) + at(2, 0));
      const float right = at(2, 1) + at(2, 2);
      REQUIRE(sum.values[static_cast<std::size_t>(e)] == left + right);
    }
  }
}

TEST_CASE("gaps are zeroed, and nothing else") {
  const auto backend = backend_under_test();
  std::vector<ZeroGaps::Gap> gaps{{0, 1}, {5, 3}, {700, 1000}};
  for (std::int64_t i = 0; i < 300; ++i) gaps.push_back({2000 + 7 * i, i % 7});  // more gaps than one launch zeroes
  gaps.push_back({4999, 1});
  const Value x = random_value({5000}, DType::float32, 5, 1, 2);
  const Value y = run_op(*backend, std::make_shared<ZeroGaps>(gaps), {x})[0];
  for (std::int64_t e = 0; e < 5000; ++e) {
    const bool inside = std::any_of(gaps.begin(), gaps.end(), [e](const ZeroGaps::Gap& gap) {
      return e >= gap.first && e < gap.first + gap.count;
    });
    REQUIRE(y.values[static_cast<std::size_t>(e)] == (inside ? 0 : x.values[static_cast<std::size_t>(e)]));
  }
}

}  // namespace trainctl::test::tree_sum_test
