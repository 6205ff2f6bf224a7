// Tests batch normalisation, ReLU and max pooling as one op: all implementations have the bits of the separate ops.
#include "core/graph/ops/normalization/batch_norm_pool.h"

#include <cmath>
#include <string>

#include "core/backend/choices.h"
#include "test/catch.h"
#include "test/core/backend/run_op.h"

namespace trainctl::test::batch_norm_pool_test {
namespace {

// Returns a copy of the choices in which the op `def` has the implementation `wanted`.
KernelChoices with_choice(const KernelChoices& choices, const OpDef& def, const std::string& wanted) {
  std::string text = choices.text();
  const std::size_t line = text.find(std::string(def.kind()) + " "), tab = text.find('\t', line);
  REQUIRE(tab != std::string::npos);
  text.replace(tab + 1, text.find('\n', tab) - tab - 1, wanted);
  KernelChoices changed;
  changed.add(text);
  return changed;
}

// Returns the outputs of the op, computed with each implementation that the backend has for it.
std::vector<std::vector<Value>> by_every_implementation(Backend& backend, const std::shared_ptr<const OpDef>& def,
                                                        const std::vector<Value>& inputs,
                                                        const std::vector<Value>& old = {}) {
  KernelChoices choices;
  std::vector<std::vector<Value>> results{run_op(backend, def, inputs, old, &choices)};
  if (backend.name() == "cpu") return results;  // has only one implementation
  std::size_t ways = 0;
  for (const std::string way :
       {"fused", "fused, 1 channels a thread", "fused, 4 channels a thread", "fused, 8 channels a thread", "apart"}) {
    if (way.starts_with("fused, 8") && inputs[0].type.shape.back() % 8 != 0) continue;
    KernelChoices changed = with_choice(choices, *def, way);
    Lowering lowering;
    results.push_back(run_op(backend, def, inputs, old, &changed, &lowering));
    if (lowering.implementation.ends_with(", " + way)) ++ways;
  }
  CHECK(ways >= 2);
  return results;
}

// Checks that the values are equal within a relative tolerance and have NaN at the same positions.
void check_equal(const Value& got, const Value& expected, double tolerance = 0) {
  REQUIRE(got.values.size() == expected.values.size());
  std::size_t different = 0;
  for (std::size_t i = 0; i < got.values.size(); ++i) {
    const double a = got.values[i], b = expected.values[i];
    different += (std::isnan(a) && std::isnan(b)) || std::abs(a - b) <= tolerance * (1 + std::abs(b)) ? 0 : 1;
  }
  CHECK(different == 0);
}

}  // namespace

TEST_CASE("batch normalisation and pooling as one op compute the same as the two ops, forward and backward") {
  const auto backend = backend_under_test({.threads = 2});
  const DType dtype = GENERATE(DType::float32, DType::bfloat16, DType::float16);
  if (!backend->computes_in(dtype)) return;
  struct Case {
    Window window;
    std::int64_t channels;
    bool scale, center, broken;  // broken: x contains a NaN
  };
  const Window overlapping{{3, 3}, {2, 2}, {1, 1}, {1, 1}, {1, 1}};
  for (const Case& c : {Case{overlapping, 16, true, true, false}, Case{overlapping, 16, true, true, true},
                        Case{{{2, 2}, {2, 2}, {1, 1}, {0, 0}, {0, 0}}, 3, true, false, false},
                        Case{{{2, 3}, {1, 2}, {3, 2}, {2, 1}, {1, 2}}, 24, false, true, false}}) {
    const Window& window = c.window;
    const std::int64_t channels = c.channels;
    const BatchNormAttributes a{1e-3f, c.scale, c.center, false, true};
    CAPTURE(name_of(dtype), to_string(window), channels, c.broken);
    const Shape shape{2, 9, 10, channels}, per_channel{channels};
    Value x = random_value(shape, dtype, 1, -1, 2);
    if (c.broken) x.values[static_cast<std::size_t>(channels) * 31 + 1] = std::nan("");
    std::vector<Value> inputs{x};
    if (a.scale) inputs.push_back(random_value(per_channel, DType::float32, 2, 0.5, 2));
    if (a.center) inputs.push_back(random_value(per_channel, DType::float32, 3));
    const auto normalised = run_op(*backend, std::make_shared<BatchNorm>(a), inputs);
    const auto pooled = run_op(*backend, std::make_shared<Pool2d>(PoolMode::max, window, true), {normalised[0]});
    for (const auto& got : by_every_implementation(*backend, std::make_shared<BatchNormPool>(a, window), inputs)) {
      check_equal(got[0], pooled[0]);
      check_equal(got[1], normalised[1]);
      check_equal(got[2], normalised[2]);
      check_equal(got[3], pooled[1]);
    }

    const Value dy = random_value(pooled[0].type.shape, dtype, 4);
    std::vector<Value> backward{dy, pooled[1]};
    backward.insert(backward.end(), inputs.begin(), inputs.end());
    backward.insert(backward.end(), {normalised[1], normalised[2]});
    std::vector<Value> apart(backward.begin() + 1, backward.end());
    apart[0] = run_op(*backend, std::make_shared<Pool2dGrad>(PoolMode::max, window, shape), {dy, pooled[1]})[0];
    const std::vector<Value> old{
        {}, random_value(per_channel, DType::float32, 5), random_value(per_channel, DType::float32, 6)};
    const std::vector<Value> initial(old.begin(), old.begin() + 1 + a.scale + a.center);
    const auto expected = run_op(*backend, std::make_shared<BatchNormGrad>(a, true), apart, initial);
    // Sums over a channel may be added in another order, so that a value of dx may be rounded differently.
    const double rounding = dtype == DType::float32 ? 1e-6 : dtype == DType::bfloat16 ? 0x1p-8 : 0x1p-11;
    const auto def = std::make_shared<BatchNormPoolGrad>(a, window, shape, true);
    for (const auto& got : by_every_implementation(*backend, def, backward, initial)) {
      for (std::size_t i = 0; i < expected.size(); ++i) {
        CAPTURE(i);
        check_equal(got[i], expected[i], i == 0 ? rounding : 1e-5);
      }
    }
  }
}

}  // namespace trainctl::test::batch_norm_pool_test
