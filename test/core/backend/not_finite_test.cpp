// Tests that every kernel passes a NaN on, so that values that are not finite show in the loss.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "core/graph/ops/dense.h"
#include "core/graph/ops/elementwise/activations.h"
#include "core/graph/ops/images/convolution.h"
#include "core/graph/ops/images/pool2d.h"
#include "core/graph/ops/losses/losses.h"
#include "test/catch.h"
#include "test/core/backend/run_op.h"

namespace trainctl::test::not_finite_test {
namespace {

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();
constexpr ActivationKind fused_kinds[] = {ActivationKind::none, ActivationKind::relu, ActivationKind::leaky_relu,
                                          ActivationKind::tanh, ActivationKind::sigmoid};

using Positions = std::function<bool(std::size_t)>;

// Checks that the values at the `expected` positions are NaN, that other NaNs are only at `allowed` positions, and that
// a relu leaves no value below zero beyond rounding.
void check_nans(const Value& y, ActivationKind kind, const Positions& expected, const Positions& allowed) {
  std::size_t missing = 0, elsewhere = 0, negative = 0;
  for (std::size_t i = 0; i < y.values.size(); ++i) {
    missing += expected(i) && !std::isnan(y.values[i]) ? 1 : 0;
    elsewhere += !expected(i) && !allowed(i) && std::isnan(y.values[i]) ? 1 : 0;
    negative += kind == ActivationKind::relu && y.values[i] < -1e-15 ? 1 : 0;
  }
  CHECK(missing == 0);
  CHECK(elsewhere == 0);
  CHECK(negative == 0);
}

void check_nans(const Value& y, ActivationKind kind, const Positions& expected) {
  check_nans(y, kind, expected, expected);
}

}  // namespace

TEST_CASE(
    "a NaN in the samples passes through dense layers, convolutions, activations and sums, but not through relus that "
    "are fused into products, which evaluation does not use") {
  const auto backend = backend_under_test({.threads = 2});
  const DType dtype = GENERATE(DType::float32, DType::bfloat16);
  for (ActivationKind kind : fused_kinds) {
    const ActivationFunction f{kind, 0.2f};
    CAPTURE(name_of(dtype), to_string(f));

    Value rows = random_value({20, 40}, dtype, 1);
    rows.values[7 * 40 + 3] = not_a_number;
    const Value kernel = random_value({40, 24}, dtype, 2), bias = random_value({24}, DType::float32, 3);
    // oneDNN's relu after a product or a convolution is the maximum of 0 and x, which on x86 is 0 if x is NaN.
    const bool keeps_nans = kind != ActivationKind::relu;
    const auto dense = run_op(*backend, std::make_shared<Dense>(f), {rows, kernel, bias});
    if (keeps_nans) check_nans(dense[0], kind, [](std::size_t i) { return i / 24 == 7; });

    for (const std::int64_t size : {1, 3}) {
      for (const std::int64_t channels : {3, 32}) {
        Value images = random_value({4, 9, 8, channels}, dtype, 4);
        images.values[static_cast<std::size_t>(((2 * 9 + 5) * 8 + 4) * channels + 1)] = not_a_number;
        const Window window{{size, size}, {1, 1}, {1, 1}, {size / 2, size / 2}, {size / 2, size / 2}};
        const Value filters = random_value({size, size, channels, 16}, dtype, 5);
        const Value offsets = random_value({16}, DType::float32, 6);
        Lowering lowering;
        const auto conv = run_op(*backend, std::make_shared<Conv2d>(window, 1, f), {images, filters, offsets}, {},
                                 nullptr, &lowering);
        CAPTURE(size, channels, lowering.implementation);
        if (!keeps_nans) continue;
        const auto distance = [](std::size_t i) {
          const auto pixel = static_cast<std::int64_t>(i / 16);
          const std::int64_t n = pixel / 72, row = pixel / 8 % 9, column = pixel % 8;
          return n == 2 ? std::max(std::abs(row - 5), std::abs(column - 4)) : 100;
        };
        // oneDNN's kernels for few channels multiply further neighbouring pixels by zero, which yields NaN, too.
        check_nans(
            conv[0], kind, [&](std::size_t i) { return distance(i) <= size / 2; },
            [&](std::size_t i) { return distance(i) <= size; });
      }
    }

    const auto here = [](std::size_t i) { return i == 7 * 40 + 3; };
    const Value other = random_value({20, 40}, dtype, 7);
    check_nans(run_op(*backend, std::make_shared<Add>(f), {rows, other})[0], kind, here);
  }
  for (ActivationKind kind : activation_kinds) {
    const ActivationFunction f{kind, 0.2f};
    CAPTURE(name_of(dtype), to_string(f));
    Value rows = random_value({20, 40}, dtype, 1);
    rows.values[7 * 40 + 3] = not_a_number;
    check_nans(run_op(*backend, std::make_shared<Activation>(f), {rows})[0], kind,
               [](std::size_t i) { return i == 7 * 40 + 3; });
  }
}

TEST_CASE("a NaN in a window is its maximum and its mean, and a NaN in the logits makes the loss NaN") {
  const auto backend = backend_under_test({.threads = 2});
  const DType dtype = GENERATE(DType::float32, DType::bfloat16);
  const Window window{{2, 2}, {2, 2}, {1, 1}, {0, 0}, {0, 0}};
  for (int position = 0; position < 4; ++position) {
    Value images = random_value({2, 6, 6, 5}, dtype, 1);
    images.values[static_cast<std::size_t>(((6 + 2 + position / 2) * 6 + 4 + position % 2) * 5 + 3)] = not_a_number;
    for (const PoolMode mode : {PoolMode::max, PoolMode::average}) {
      const auto y = run_op(*backend, std::make_shared<Pool2d>(mode, window, false), {images});
      check_nans(y[0], ActivationKind::none, [](std::size_t i) { return i == ((3 + 1) * 3 + 2) * 5 + 3; });
    }
  }
  const Value weights{{{2}, DType::float32}, {1, 1}};
  const Value labels{{{2}, DType::int32}, {0, 2}};
  for (int position = 0; position < 3; ++position) {
    Value logits = random_value({2, 3}, dtype, 3);
    logits.values[static_cast<std::size_t>(3 + position)] = not_a_number;
    const auto loss = run_op(*backend, std::make_shared<Loss>(SparseCategoricalCrossentropy{}, false, false),
                             {logits, labels, weights});
    CHECK(std::isnan(loss[0].values[0]));
  }
}

}  // namespace trainctl::test::not_finite_test
