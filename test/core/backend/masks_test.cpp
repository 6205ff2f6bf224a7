// Compares the ops of padding masks with their definitions.
#include "core/graph/ops/masks.h"

#include "test/catch.h"
#include "test/core/backend/run_op.h"

namespace trainctl::test::masks_test {
namespace {

std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

}  // namespace

TEST_CASE("masks hide tokens that are padding, and positions whose values all are") {
  const auto backend = backend_under_test({.threads = 2});
  const Value tokens = random_integers({7, 5, 3}, DType::int32, 1, 3);
  std::vector<double> expected;
  for (const double token : tokens.values) expected.push_back(token != 2 ? 1 : 0);
  CHECK(run_op(*backend, std::make_shared<PositionMask>(2.0f), {tokens})[0].values == expected);
  for (const DType dtype : {DType::float32, DType::bfloat16}) {
    // bfloat16 holds -1000, not -999: the values and the padding are rounded alike.
    const float padding = -999;
    const double stored = round_to(dtype, -999);
    Value x = random_value({9, 11, 4}, dtype, 2);
    const Value drop = random_integers({9, 11, 4}, DType::uint8, 3, 2);
    expected.assign(99, 0);
    for (std::size_t i = 0; i < x.values.size(); ++i) {
      if (drop.values[i] == 0) x.values[i] = stored;
      if (x.values[i] != stored) expected[i / 4] = 1;
    }
    CHECK(run_op(*backend, std::make_shared<PositionMask>(padding), {x})[0].values == expected);
  }
}

TEST_CASE("masks are merged, and hide values") {
  const auto backend = backend_under_test({.threads = 2});
  const Value a = random_integers({13, 5}, DType::uint8, 1, 2), b = random_integers({13, 5}, DType::uint8, 2, 2);
  std::vector<double> any, all;
  for (std::size_t i = 0; i < a.values.size(); ++i) {
    any.push_back(a.values[i] + b.values[i] > 0 ? 1 : 0);
    all.push_back(a.values[i] * b.values[i]);
  }
  CHECK(run_op(*backend, std::make_shared<MergeMasks>(false), {a, b})[0].values == any);
  CHECK(run_op(*backend, std::make_shared<MergeMasks>(true), {a, b})[0].values == all);
  for (const DType dtype : {DType::float32, DType::bfloat16}) {
    const Value x = random_value({13, 5, 6}, dtype, 3);
    std::vector<double> shown;
    for (std::size_t i = 0; i < x.values.size(); ++i) shown.push_back(a.values[i / 6] != 0 ? x.values[i] : 0);
    for (const OutputPlaces places : {OutputPlaces::apart, OutputPlaces::in_place}) {
      const auto y = run_op(*backend, std::make_shared<MaskPositions>(), {x, a}, {}, nullptr, nullptr, places);
      CHECK(y[0].values == shown);
    }
  }
}

TEST_CASE("masked means are over the positions that are shown, and 0 if there are none") {
  const auto backend = backend_under_test({.threads = 2});
  const std::int64_t samples = 5, steps = 9, channels = 35;
  Value mask = random_integers({samples, steps}, DType::uint8, 1, 2);
  std::fill_n(mask.values.begin() + 2 * steps, steps, 0.0);
  for (const DType dtype : {DType::float32, DType::bfloat16}) {
    const Value x = random_value({samples, steps, channels}, dtype, 2);
    const Value dy = random_value({samples, channels}, dtype, 3);
    std::vector<double> means(at(samples * channels)), dx(x.values.size());
    for (std::int64_t n = 0; n < samples; ++n) {
      double shown = 0;
      for (std::int64_t t = 0; t < steps; ++t) shown += mask.values[at(n * steps + t)];
      for (std::int64_t t = 0; t < steps && shown > 0; ++t) {
        const double share = mask.values[at(n * steps + t)] / shown;
        for (std::int64_t c = 0; c < channels; ++c) {
          means[at(n * channels + c)] += share * x.values[at((n * steps + t) * channels + c)];
          dx[at((n * steps + t) * channels + c)] = share * dy.values[at(n * channels + c)];
        }
      }
    }
    const double tolerance = dtype == DType::float32 ? 1e-6 : 4e-3;
    CHECK(largest_error(run_op(*backend, std::make_shared<MaskedMean>(), {x, mask})[0], means) < tolerance);
    CHECK(largest_error(run_op(*backend, std::make_shared<MaskedMeanGrad>(), {dy, mask})[0], dx) < tolerance);
  }
}

TEST_CASE("positions have weights if neither their mask, nor their target, nor their sample leaves them out") {
  const auto backend = backend_under_test({.threads = 2});
  const std::int64_t samples = 6, steps = 10;
  const Value mask = random_integers({samples, steps}, DType::uint8, 1, 2);
  const Value targets = random_integers({samples, steps}, DType::int32, 2, 3);
  const Value numbers{{{samples}, DType::int64}, {4, -1, 0, 7, -5, 2}};  // two samples are missing
  for (const bool by_position : {false, true}) {
    const Value weights = random_value(by_position ? Shape{samples, steps} : Shape{samples}, DType::float32, 3, 0, 2);
    for (const auto& [masked, ignored] : {std::pair{true, std::optional<std::int32_t>()}, {false, 1}, {true, 1}}) {
      std::vector<Value> inputs{weights, numbers};
      if (masked) inputs.push_back(mask);
      if (ignored) inputs.push_back(targets);
      std::vector<double> expected, counted;
      for (std::int64_t i = 0; i < samples * steps; ++i) {
        const bool counts = numbers.values[at(i / steps)] >= 0 && (!masked || mask.values[at(i)] != 0) &&
                            (!ignored || targets.values[at(i)] != *ignored);
        expected.push_back(counts ? weights.values[at(by_position ? i : i / steps)] : 0);
        counted.push_back(counts ? 1 : 0);
      }
      const auto got = run_op(*backend, std::make_shared<MaskWeights>(masked, ignored), inputs);
      CHECK(got[0].values == expected);
      CHECK(got[1].values == counted);
    }
  }
}

}  // namespace trainctl::test::masks_test
