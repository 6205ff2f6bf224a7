// Tests that joined ops give the same bits as the two ops.
#include "core/compile/joined_ops.h"

#include <algorithm>

#include "core/graph/ops/elementwise/activations.h"
#include "core/graph/ops/normalization/layer_norm.h"
#include "test/catch.h"
#include "test/core/backend/run_op.h"

namespace trainctl::test::joined_ops_test {
namespace {

// The ops of y = layer_norm(x + r) and of the sum of `y` and the first sum. Tensors: x 0, r 1, gamma 2, sum 3, y 4,
// mean 5, rstd 6, result 7.
std::vector<Op> residual_ops(const LayerNormAttributes& attributes) {
  const auto sum = std::make_shared<Add>();
  return {{.def = sum, .inputs = {0, 1}, .outputs = {3}, .name = "sum"},
          {.def = std::make_shared<LayerNorm>(attributes), .inputs = {3, 2}, .outputs = {4, 5, 6}, .name = "norm"},
          {.def = sum, .inputs = {3, 4}, .outputs = {7}, .name = "result"}};
}

}  // namespace

TEST_CASE("a sum and the layer normalization of it are one op with the outputs of both, and the same bits") {
  const DType dtype = GENERATE(DType::float32, DType::bfloat16);
  const bool centered = GENERATE(true, false);
  const LayerNormAttributes attributes{{.center = false}, centered};
  const std::vector<Op> ops = residual_ops(attributes), joined = join_ops(ops);
  REQUIRE(joined.size() == 2);
  CHECK(joined[0].inputs == std::vector<TensorId>{0, 1, 2});
  CHECK(joined[0].outputs == std::vector<TensorId>{4, 5, 6, 3});
  CHECK(joined[1].outputs == std::vector<TensorId>{7});

  const auto backend = backend_under_test();
  if (!backend->computes_in(dtype)) return;
  const std::vector<Value> inputs{random_value({7, 3, 29}, dtype, 1), random_value({7, 3, 29}, dtype, 2),
                                  random_value({29}, DType::float32, 3)};
  const Value sum = run_op(*backend, ops[0].def, {inputs[0], inputs[1]})[0];
  const std::vector<Value> apart = run_op(*backend, ops[1].def, {sum, inputs[2]});
  const OutputPlaces places = GENERATE(OutputPlaces::apart, OutputPlaces::in_place);
  const std::vector<Value> together = run_op(*backend, joined[0].def, inputs, {}, nullptr, nullptr, places);
  REQUIRE(together.size() == 4);
  for (std::size_t i = 0; i < 3; ++i) CHECK(together[i].values == apart[i].values);
  CHECK(together[3].values == sum.values);
}

TEST_CASE("ops are joined only if they follow each other") {
  std::vector<Op> ops = residual_ops({{.center = false}});
  std::swap(ops[0].inputs, ops[2].inputs);
  std::rotate(ops.begin(), ops.begin() + 1, ops.end());
  CHECK(join_ops(ops).size() == 3);
}

}  // namespace trainctl::test::joined_ops_test
