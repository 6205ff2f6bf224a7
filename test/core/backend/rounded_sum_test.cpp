// Compares the ops of a sum whose summands are sent as bfloat16 with their definition, bit for bit.
#include "core/graph/ops/training/rounded_sum.h"

#include "test/catch.h"
#include "test/core/backend/run_op.h"

namespace trainctl::test::rounded_sum_test {

TEST_CASE("summands are rounded and padded, added in float32 in their order, and widened") {
  const auto backend = backend_under_test();
  for (const auto& [ranks, count] : {std::pair<int, std::int64_t>{2, 8}, {3, 100}, {4, 40001}, {7, 5}}) {
    CAPTURE(ranks, count);
    const std::int64_t part = (count + ranks - 1) / ranks;
    const Value x = random_value({count}, DType::float32, 3, -100, 100);
    const Value rounded = run_op(*backend, std::make_shared<RoundSummands>(MeshAxis::data, ranks), {x})[0];
    REQUIRE(rounded.type == TensorType{{ranks * part}, DType::bfloat16});
    for (std::int64_t i = 0; i < ranks * part; ++i) {
      const auto at = static_cast<std::size_t>(i);
      REQUIRE(rounded.values[at] == (i < count ? round_to(DType::bfloat16, x.values[at]) : 0));
    }
    // Summands of very different sizes, whose sum depends on the order.
    Value summands = random_value({ranks * part}, DType::bfloat16, 4, -1, 1);
    for (std::size_t i = 0; i < summands.values.size(); i += 3) summands.values[i] *= 4096;
    for (const DType to : {DType::float32, DType::bfloat16}) {
      const auto def = std::make_shared<AddSummands>(MeshAxis::data, ranks, to);
      const Value sums = run_op(*backend, def, {summands})[0];
      REQUIRE(sums.type == TensorType{{part}, to});
      for (std::int64_t i = 0; i < part; ++i) {
        float sum = 0;
        for (int rank = 0; rank < ranks; ++rank) {
          sum += static_cast<float>(summands.values[static_cast<std::size_t>(rank * part + i)]);
        }
        REQUIRE(sums.values[static_cast<std::size_t>(i)] == round_to(to, sum));
      }
    }
    const Value wide = run_op(*backend, std::make_shared<WidenSums>(MeshAxis::data, ranks, count), {rounded})[0];
    REQUIRE(wide.type == x.type);
    for (std::size_t i = 0; i < x.values.size(); ++i) REQUIRE(wide.values[i] == rounded.values[i]);
  }
}

}  // namespace trainctl::test::rounded_sum_test
