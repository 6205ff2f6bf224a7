// Compares group, layer and RMS normalisation with their definition in float64, at sizes whose sums are computed in
// pieces.
#include <cmath>

#include "core/graph/ops/normalization/group_norm.h"
#include "core/graph/ops/normalization/layer_norm.h"
#include "test/catch.h"
#include "test/core/backend/run_op.h"

namespace trainctl::test::norm_test {
namespace {

struct Expected {
  std::vector<double> y, dx, dgamma, dbeta;
};

// Calls visit(element, channel) for the values of a group in the order of memory.
template <class Visit>
void each_value(const Shape& x, std::int64_t groups, std::int64_t sample, std::int64_t group, const Visit& visit) {
  const std::int64_t channels = x.back(), width = channels / groups, positions = x.rows() / x[0];
  for (std::int64_t p = 0; p < positions; ++p) {
    for (std::int64_t c = group * width; c < (group + 1) * width; ++c) {
      visit(static_cast<std::size_t>((sample * positions + p) * channels + c), static_cast<std::size_t>(c));
    }
  }
}

Expected by_definition(const Value& x, const Value& dy, const Value& gamma, const Value& beta,
                       const GroupNormAttributes& a, bool centered = true) {
  const Shape& shape = x.type.shape;
  const std::vector<double> none(gamma.values.size());
  Expected expected{x.values, x.values, none, none};
  const double count = static_cast<double>(shape.count() / shape[0] / a.groups);
  for (std::int64_t sample = 0; sample < shape[0]; ++sample) {
    for (std::int64_t group = 0; group < a.groups; ++group) {
      const auto each = [&](const auto& visit) { each_value(shape, a.groups, sample, group, visit); };
      double mean = 0, variance = 0, sum = 0, along = 0;
      if (centered) each([&](std::size_t i, std::size_t) { mean += x.values[i] / count; });
      each([&](std::size_t i, std::size_t) { variance += (x.values[i] - mean) * (x.values[i] - mean) / count; });
      const double rstd = 1 / std::sqrt(variance + static_cast<double>(a.epsilon));
      each([&](std::size_t i, std::size_t c) {
        const double normal = (x.values[i] - mean) * rstd;
        expected.y[i] = gamma.values[c] * normal + beta.values[c];
        expected.dgamma[c] += dy.values[i] * normal;
        expected.dbeta[c] += dy.values[i];
        if (centered) sum += dy.values[i] * gamma.values[c] / count;
        along += dy.values[i] * gamma.values[c] * normal / count;
      });
      each([&](std::size_t i, std::size_t c) {
        const double normal = (x.values[i] - mean) * rstd;
        expected.dx[i] = rstd * (dy.values[i] * gamma.values[c] - sum - normal * along);
      });
    }
  }
  return expected;
}

struct Sizes {
  Shape shape;
  std::int64_t groups;
};

// Returns sample `number` of a batch as a batch of one sample.
Value sample_of(const Value& batch, std::int64_t number) {
  Value sample = batch;
  sample.type.shape[0] = 1;
  const std::int64_t count = sample.type.shape.count();
  const auto first = batch.values.begin() + number * count;
  sample.values.assign(first, first + count);
  return sample;
}

// Checks the gradients, with and without adding to the outputs, and that backend `two` computes the bits of `one` with
// outputs in `places`.
template <class Grad, class Attributes>
void check_gradient(Backend& one, Backend& two, const Attributes& a, const std::vector<Value>& inputs,
                    const Expected& expected, OutputPlaces places) {
  const Shape& channels = inputs[2].type.shape;
  const std::vector<Value> before{inputs[1], random_value(channels, DType::float32, 5),
                                  random_value(channels, DType::float32, 6)};
  for (const bool add : {false, true}) {
    const auto grad = std::make_shared<Grad>(a, add);
    const auto got = run_op(one, grad, inputs, before);
    std::vector<double> dgamma = expected.dgamma, dbeta = expected.dbeta;
    for (std::size_t k = 0; add && k < dgamma.size(); ++k) {
      dgamma[k] += before[1].values[k];
      dbeta[k] += before[2].values[k];
    }
    CHECK(largest_error(got[0], expected.dx) < 1e-5);
    CHECK(largest_error(got[1], dgamma) < 2e-5);
    CHECK(largest_error(got[2], dbeta) < 2e-5);
    const auto again = run_op(two, grad, inputs, before, nullptr, nullptr, places);
    for (std::size_t i = 0; i < got.size(); ++i) CHECK(again[i].values == got[i].values);
  }
}

}  // namespace

TEST_CASE(
    "group normalisation and its gradient are right at every width, with the same bits for any number of threads") {
  const auto one = backend_under_test({.threads = 1}), two = backend_under_test({.threads = 2});
  for (const auto& [shape, groups] : {Sizes{{3, 70, 37, 16}, 4}, Sizes{{3, 19, 17, 96}, 32}, Sizes{{5, 7, 66}, 3},
                                      Sizes{{3, 30, 31, 5}, 5}, Sizes{{7, 600}, 2}, Sizes{{9, 150, 8}, 1}}) {
    const Shape channels{shape.back()};
    const Value x = random_value(shape, DType::float32, 1, -1, 3), dy = random_value(shape, DType::float32, 2);
    const Value gamma = random_value(channels, DType::float32, 3), beta = random_value(channels, DType::float32, 4);
    const GroupNormAttributes a{{.epsilon = 1e-5f}, groups};
    const Expected expected = by_definition(x, dy, gamma, beta, a);
    CAPTURE(to_string(shape), groups);
    const auto def = std::make_shared<GroupNorm>(a);
    const auto forward = run_op(*one, def, {x, gamma, beta});
    CHECK(largest_error(forward[0], expected.y) < 2e-6);
    CHECK(run_op(*two, def, {x, gamma, beta})[0].values == forward[0].values);
    const auto in_place = run_op(*one, def, {x, gamma, beta}, {}, nullptr, nullptr, OutputPlaces::in_place);
    CHECK(in_place[0].values == forward[0].values);
    const auto alone = run_op(*two, def, {sample_of(x, 1), gamma, beta});
    for (std::size_t i = 0; i < forward.size(); ++i) CHECK(alone[i].values == sample_of(forward[i], 1).values);

    check_gradient<GroupNormGrad>(*one, *two, a, {dy, x, gamma, forward[1], forward[2]}, expected,
                                  OutputPlaces::in_place);
  }
}

TEST_CASE(
    "layer normalisation and its gradient are right at every width, with the same bits for any number of threads") {
  const auto one = backend_under_test({.threads = 1}), two = backend_under_test({.threads = 2});
  const bool centered = GENERATE(true, false);
  for (const Shape& shape : {Shape{1300, 16}, Shape{70, 264}, Shape{3, 9000}, Shape{5, 7, 33}}) {
    const Shape channels{shape.back()};
    const Value x = random_value(shape, DType::float32, 1, -1, 3), dy = random_value(shape, DType::float32, 2);
    const Value gamma = random_value(channels, DType::float32, 3), beta = random_value(channels, DType::float32, 4);
    const LayerNormAttributes a{{.epsilon = 1e-5f}, centered};
    Value rows = x;  // each is a sample whose channels are one group
    rows.type.shape = {shape.count() / shape.back(), shape.back()};
    const Expected expected = by_definition(rows, dy, gamma, beta, {a, 1}, centered);
    CAPTURE(to_string(shape), centered);
    const auto forward = run_op(*one, std::make_shared<LayerNorm>(a), {x, gamma, beta});
    CHECK(largest_error(forward[0], expected.y) < 2e-6);
    check_gradient<LayerNormGrad>(*one, *two, a, {dy, x, gamma, forward[1], forward[2]}, expected, OutputPlaces::apart);
  }
}

TEST_CASE("the variance of group normalisation is precise even if the mean is large") {
  const auto backend = backend_under_test({.threads = 2});
  const Shape shape{2, 40, 41, 8}, channels{8};
  const Value dy = random_value(shape, DType::float32, 2);
  Value x = random_value(shape, DType::float32, 1, 4095, 4097);
  for (std::int64_t i = 0; i < 8; ++i) x.values[static_cast<std::size_t>(i)] = 0;  // the first pixel is an outlier
  const Value gamma = random_value(channels, DType::float32, 3), beta = random_value(channels, DType::float32, 4);
  const GroupNormAttributes a{{}, 2};
  const Expected expected = by_definition(x, dy, gamma, beta, a);
  const auto forward = run_op(*backend, std::make_shared<GroupNorm>(a), {x, gamma, beta});
  CHECK(largest_error(forward[0], expected.y) < 1e-3);
  CHECK(forward[2].values[2] == Approx(std::sqrt(3.0)).epsilon(0.02));  // uniform of width 2
}

TEST_CASE("group normalisation of bfloat16 values has float32 statistics") {
  const auto backend = backend_under_test({.threads = 2});
  const Shape shape{2, 33, 31, 24}, channels{24};
  const Value x = random_value(shape, DType::bfloat16, 1, 5, 9), dy = random_value(shape, DType::bfloat16, 2);
  const Value gamma = random_value(channels, DType::float32, 3), beta = random_value(channels, DType::float32, 4);
  const GroupNormAttributes a{{}, 3};
  const Expected expected = by_definition(x, dy, gamma, beta, a);
  const auto forward = run_op(*backend, std::make_shared<GroupNorm>(a), {x, gamma, beta});
  CHECK(largest_error(forward[0], expected.y) < 4e-3);
  const auto got = run_op(*backend, std::make_shared<GroupNormGrad>(a, false), {dy, x, gamma, forward[1], forward[2]});
  CHECK(largest_error(got[0], expected.dx) < 4e-3);
  CHECK(largest_error(got[1], expected.dgamma) < 2e-5);
  CHECK(largest_error(got[2], expected.dbeta) < 2e-5);
}

}  // namespace trainctl::test::norm_test
