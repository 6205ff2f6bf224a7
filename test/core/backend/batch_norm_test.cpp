// Compares batch normalisation with its definition in float64, forward and backward, with residual and ReLU.
#include "core/graph/ops/normalization/batch_norm.h"
#include <cmath>
#include "core/graph/ops/normalization/statistics.h"
#include "test/catch.h"
#include "test/core/backend/run_op.h"

namespace trainctl::test::batch_norm_test {
namespace {

using Values = std::vector<double>;

struct Reference {
  Values mean, variance, y, dx, dgamma, dbeta, dresidual;
};

// Computes the outputs and the gradients by the definition.
Reference reference(const Value& x, const Value& gamma, const Value& beta, const Value& residual, const Value& dy,
                    const BatchNormAttributes& a) {
  const auto channels = static_cast<std::size_t>(x.type.shape.back());
  const std::size_t n = x.values.size();
  const double rows = static_cast<double>(n / channels);
  Reference r{Values(channels), Values(channels), Values(n), Values(n), Values(channels), Values(channels), Values(n)};
  for (std::size_t i = 0; i < n; ++i) r.mean[i % channels] += x.values[i] / rows;
  for (std::size_t i = 0; i < n; ++i)
    r.variance[i % channels] += std::pow(x.values[i] - r.mean[i % channels], 2) / rows;
  const auto normal = [&](std::size_t i) {
    const std::size_t c = i % channels;
    return (x.values[i] - r.mean[c]) / std::sqrt(r.variance[c] + static_cast<double>(a.epsilon));
  };
  for (std::size_t i = 0; i < n; ++i) {
    const std::size_t c = i % channels;
    double y = (a.scale ? gamma.values[c] : 1.0) * normal(i) + (a.center ? beta.values[c] : 0.0);
    if (a.residual) y += residual.values[i];
    const bool passes = !a.relu || y > 0;
    r.y[i] = passes ? y : 0;
    r.dresidual[i] = passes ? dy.values[i] : 0;
    r.dbeta[c] += r.dresidual[i];
    r.dgamma[c] += r.dresidual[i] * normal(i);
  }
  for (std::size_t i = 0; i < n; ++i) {
    const std::size_t c = i % channels;
    const double scale = (a.scale ? gamma.values[c] : 1.0) / std::sqrt(r.variance[c] + static_cast<double>(a.epsilon));
    r.dx[i] = scale * (r.dresidual[i] - r.dbeta[c] / rows - normal(i) * r.dgamma[c] / rows);
  }
  return r;
}

// Returns the inputs of the gradient op: dy and the tensors that it reads of the forward pass.
std::vector<Value> gradient_inputs(const BatchNormAttributes& a, const Value& dy, const Value& x,
                                   const std::vector<Value>& forward, const Value& gamma, const Value& beta) {
  const std::int64_t channels = x.type.shape.back();
  std::vector<Value> inputs{dy, x};
  if (a.masks_by_bits(channels)) inputs.push_back(forward[3]);
  if (a.masks_by_y(channels)) inputs.push_back(forward[0]);
  if (a.scale) inputs.push_back(gamma);
  if (a.masks_by_x() && a.center) inputs.push_back(beta);
  inputs.insert(inputs.end(), {forward[1], forward[2]});
  return inputs;
}

}  // namespace

TEST_CASE("batch norm, its gradient and its inference follow the definition") {
  const auto backend = backend_under_test({.threads = GENERATE(1, 2)});
  const DType dtype = GENERATE(DType::float32, DType::bfloat16);
  const Shape shape =
      GENERATE(Shape{4, 5, 7, 16}, Shape{33, 3}, Shape{2, 3, 3, 130}, Shape{64, 20, 20, 10}, Shape{3, 5, 600});
  const bool residual = GENERATE(false, true), relu = GENERATE(false, true), affine = GENERATE(false, true);
  CAPTURE(name_of(dtype), to_string(shape), residual, relu, affine);
  const BatchNormAttributes a{1e-3f, affine, affine, residual, relu};
  const double tolerance = dtype == DType::float32 ? 3e-5 : 2e-2;
  const Shape per_channel{shape.back()};
  const Value x = random_value(shape, dtype, 1, -1, 3), dy = random_value(shape, dtype, 2);
  const Value other = random_value(shape, dtype, 3);
  const Value gamma = random_value(per_channel, DType::float32, 4, 0.5, 2);
  const Value beta = random_value(per_channel, DType::float32, 5);

  std::vector<Value> inputs{x};
  if (affine) inputs.insert(inputs.end(), {gamma, beta});
  if (residual) inputs.push_back(other);
  const auto forward = run_op(*backend, std::make_shared<BatchNorm>(a), inputs);
  Reference r = reference(x, gamma, beta, other, dy, a);
  CHECK(largest_error(forward[0], r.y) < tolerance);
  CHECK(largest_error(forward[1], r.mean) < 2e-6);
  CHECK(largest_error(forward[2], r.variance) < 2e-6);
  REQUIRE(forward.size() == std::size_t{3} + a.masks_by_bits(shape.back()));
  for (std::size_t i = 0; forward.size() == 4 && i < r.y.size(); ++i) {
    const int byte = static_cast<int>(forward[3].values[i / 8]);
    if ((byte >> i % 8 & 1) != (forward[0].values[i] > 0)) FAIL("bit " << i << " of the mask");
  }

  // Where y is so close to 0 that rounding decides whether ReLU passes it, kernel and reference may differ: dy is 0.
  Value clean = dy;
  for (std::size_t i = 0; relu && i < clean.values.size(); ++i) {
    if (std::abs(r.y[i]) < tolerance && (r.y[i] > 0 || forward[0].values[i] > 0)) clean.values[i] = 0;
  }
  r = reference(x, gamma, beta, other, clean, a);
  for (bool accumulate : {false, true}) {
    const auto backward = gradient_inputs(a, clean, x, forward, gamma, beta);
    std::vector<Value> old{{}};
    if (affine)
      old.insert(old.end(),
                 {random_value(per_channel, DType::float32, 6), random_value(per_channel, DType::float32, 7)});
    const auto got = run_op(*backend, std::make_shared<BatchNormGrad>(a, accumulate), backward, old);
    CHECK(largest_error(got[0], r.dx) < tolerance);
    if (affine) {
      Values dgamma = r.dgamma, dbeta = r.dbeta;
      for (std::size_t c = 0; accumulate && c < dgamma.size(); ++c) {
        dgamma[c] += old[1].values[c];
        dbeta[c] += old[2].values[c];
      }
      CHECK(largest_error(got[1], dgamma) < 3e-5);
      CHECK(largest_error(got[2], dbeta) < 3e-5);
    }
    if (residual) CHECK(largest_error(got.back(), r.dresidual) < 1e-9);
  }

  std::vector<Value> given{x};
  if (affine) given.insert(given.end(), {gamma, beta});
  given.insert(given.end(), {forward[1], forward[2]});
  if (residual) given.push_back(other);
  CHECK(largest_error(run_op(*backend, std::make_shared<BatchNormInference>(a), given)[0], r.y) < tolerance);
}

TEST_CASE("the gradient of batch norm with fixed statistics is dy * gamma / sqrt(variance + epsilon)") {
  const auto backend = backend_under_test({.threads = GENERATE(1, 2)});
  for (const DType dtype : {DType::float32, DType::bfloat16}) {
    for (const std::int64_t channels : {3, 16, 130}) {
      for (const bool scale : {false, true}) {
        CAPTURE(name_of(dtype), channels, scale);
        const Value dy = random_value({33, 2, channels}, dtype, 1);
        const Value gamma = random_value({channels}, DType::float32, 2, 0.5, 2);
        const Value variance = random_value({channels}, DType::float32, 3, 0.5, 2);
        const std::vector<Value> inputs = scale ? std::vector{dy, gamma, variance} : std::vector{dy, variance};
        Values expected = dy.values;
        for (std::size_t i = 0; i < expected.size(); ++i) {
          const std::size_t c = i % static_cast<std::size_t>(channels);
          expected[i] *= (scale ? gamma.values[c] : 1) / std::sqrt(variance.values[c] + 1e-3);
        }
        const auto grad = std::make_shared<BatchNormInferenceGrad>(1e-3f, scale);
        CHECK(largest_error(run_op(*backend, grad, inputs)[0], expected) < (dtype == DType::float32 ? 3e-6 : 2e-2));
      }
    }
  }
}

// If dy is 1 everywhere, the gradient of beta is exactly the number of values above zero. Many values are zero or close
// to it: some gammas are so small that y is rounded to zero or to the smallest number of the dtype, and some values
// cancel beta.
TEST_CASE("the gradient masks exactly the values that the forward pass rounded to zero") {
  const auto backend = backend_under_test({});
  for (const DType dtype : {DType::float32, DType::bfloat16, DType::float16}) {
    if (!backend->computes_in(dtype)) continue;
    for (const std::int64_t channels : {3, 16, 40}) {
      for (const bool residual : {false, true}) {
        CAPTURE(name_of(dtype), channels, residual);
        const BatchNormAttributes a{1e-3f, true, true, residual, true};
        const Shape shape{64, 5, channels}, per_channel{channels};
        Value x = random_integers(shape, dtype, 1, 5), other = random_integers(shape, dtype, 2, 3);
        for (double& value : x.values) value -= 2;
        for (double& value : other.values) value -= 1;
        Value gamma = random_value(per_channel, DType::float32, 3, 0.5, 2);
        Value beta = random_value(per_channel, DType::float32, 4);
        for (std::size_t c = 0; c < gamma.values.size(); ++c) {
          constexpr int exponents[] = {0, -24, -25, -26, -126, -133, -134, -135};
          gamma.values[c] = round_to(DType::float32, std::ldexp(gamma.values[c], exponents[c % 8]));
          if (c % 3 != 0) beta.values[c] = c % 3 == 1 ? 0 : gamma.values[c];
        }
        std::vector<Value> inputs{x, gamma, beta};
        if (residual) inputs.push_back(other);
        const auto forward = run_op(*backend, std::make_shared<BatchNorm>(a), inputs);
        std::vector<double> counts(static_cast<std::size_t>(channels));
        for (std::size_t i = 0; i < x.values.size(); ++i) {
          counts[i % counts.size()] += forward[0].values[i] > 0 ? 1 : 0;
        }
        const Value dy{x.type, std::vector<double>(x.values.size(), 1.0)};
        const auto got = run_op(*backend, std::make_shared<BatchNormGrad>(a, false),
                                gradient_inputs(a, dy, x, forward, gamma, beta));
        CHECK(got[2].values == counts);
      }
    }
  }
}

TEST_CASE("a NaN in x makes its whole channel NaN, forward and backward, and a NaN in the residual does not spread") {
  const auto backend = backend_under_test({});
  const DType dtype = GENERATE(DType::float32, DType::bfloat16);
  const Shape shape{30, 16}, per_channel{16};
  const auto broken = GENERATE(0, 1);  // x, the residual
  const bool residual = broken == 1 || GENERATE(false, true);
  CAPTURE(name_of(dtype), broken, residual);
  const std::size_t index = 7 * 16 + 5;
  const BatchNormAttributes a{1e-3f, true, true, residual, true};
  std::vector<Value> inputs{random_value(shape, dtype, 1), random_value(per_channel, DType::float32, 2, 0.5, 2),
                            random_value(per_channel, DType::float32, 3)};
  if (residual) inputs.push_back(random_value(shape, dtype, 4));
  inputs[broken == 0 ? 0 : 3].values[index] = std::nan("");
  const auto forward = run_op(*backend, std::make_shared<BatchNorm>(a), inputs);
  const auto got = run_op(*backend, std::make_shared<BatchNormGrad>(a, false),
                          gradient_inputs(a, random_value(shape, dtype, 5), inputs[0], forward, inputs[1], inputs[2]));
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < forward[0].values.size(); ++i) {
    const bool in_channel = broken == 0 && i % 16 == 5;
    wrong += std::isnan(forward[0].values[i]) != (in_channel || (broken == 1 && i == index)) ? 1 : 0;
    wrong += std::isnan(got[0].values[i]) != in_channel ? 1 : 0;
  }
  CHECK(wrong == 0);
  CHECK(std::isnan(got[1].values[5]) == (broken == 0));  // dgamma, which is part of the gradients' norm
  if (broken == 1) CHECK(got[3].values[index] == 0);
}

TEST_CASE("the variance of values with a large mean is precise") {
  const auto backend = backend_under_test({});
  const Value x = random_value({64, 16, 16, 4}, DType::float32, 1, 4095, 4097);
  const BatchNormAttributes a{1e-3f, false, false, false, false};
  const Reference r = reference(x, {}, {}, {}, x, a);
  const auto forward = run_op(*backend, std::make_shared<BatchNorm>(a), {x});
  for (std::size_t c = 0; c < 4; ++c) CHECK(forward[2].values[c] == Approx(r.variance[c]).epsilon(1e-4));
}

TEST_CASE("statistics are summed with the number of samples as their weight") {
  const auto backend = backend_under_test({});
  const std::vector<Value> values{random_value({5}, DType::float32, 1), random_value({5}, DType::float32, 2),
                                  random_value({600}, DType::float32, 4)};
  const std::vector<Value> old{random_value({5}, DType::float32, 3), random_value({5}, DType::float32, 6),
                               random_value({600}, DType::float32, 7)};
  const double samples = 7;
  const auto op = std::make_shared<AccumulateStatistics>(true);
  const auto sums = run_op(*backend, op, {values[0], values[1], values[2], scalar(samples)}, old);
  for (std::size_t i = 0; i < 3; ++i) {
    std::vector<double> expected;
    for (std::size_t c = 0; c < values[i].values.size(); ++c) {
      expected.push_back(old[i].values[c] + samples * values[i].values[c]);
    }
    CHECK(largest_error(sums[i], expected) < 1e-5);
  }
}

}  // namespace trainctl::test::batch_norm_test
