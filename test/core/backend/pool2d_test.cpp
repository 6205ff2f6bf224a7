// Compares pooling with naive loops in float64.
#include <cmath>
#include <limits>

#include "core/graph/ops/images/pool2d.h"
#include "test/catch.h"
#include "test/core/backend/run_op.h"

namespace trainctl::test::pool2d_test {
namespace {

struct Case {
  Shape x;
  Window window;
};

const Case cases[] = {
    {{2, 8, 8, 16}, {{2, 2}, {2, 2}, {1, 1}, {0, 0}, {0, 0}}},
    {{2, 9, 7, 70}, {{3, 3}, {2, 2}, {1, 1}, {1, 1}, {1, 1}}},
    {{1, 11, 6, 3}, {{2, 3}, {1, 2}, {2, 1}, {1, 0}, {0, 2}}},
};

struct Result {
  std::vector<double> y, winners, dx;
};

Result reference(const Case& c, PoolMode mode, const Value& x, const Value& dy) {
  const Window& w = c.window;
  const std::int64_t oh = w.output(0, c.x[1]), ow = w.output(1, c.x[2]), channels = c.x[3];
  Result r{std::vector<double>(dy.values.size()), std::vector<double>(dy.values.size()),
           std::vector<double>(x.values.size())};
  for (std::int64_t o = 0; o < static_cast<std::int64_t>(dy.values.size()); ++o) {
    const std::int64_t k = o % channels, column = o / channels % ow, row = o / channels / ow % oh,
                       n = o / channels / ow / oh;
    std::vector<std::size_t> indices;
    std::vector<double> numbers;
    for (std::int64_t i = 0; i < w.size[0]; ++i) {
      for (std::int64_t j = 0; j < w.size[1]; ++j) {
        const std::int64_t h = row * w.strides[0] - w.padding_before[0] + i * w.dilation[0];
        const std::int64_t v = column * w.strides[1] - w.padding_before[1] + j * w.dilation[1];
        if (h < 0 || h >= c.x[1] || v < 0 || v >= c.x[2]) continue;
        indices.push_back(static_cast<std::size_t>(((n * c.x[1] + h) * c.x[2] + v) * channels + k));
        numbers.push_back(static_cast<double>(i * w.size[1] + j));
      }
    }
    const auto at = static_cast<std::size_t>(o);
    if (mode == PoolMode::max) {
      std::size_t best = 0;
      for (std::size_t p = 1; p < indices.size(); ++p) {
        if (x.values[indices[p]] > x.values[indices[best]]) best = p;
      }
      r.y[at] = x.values[indices[best]];
      r.winners[at] = numbers[best];
      r.dx[indices[best]] += dy.values[at];
    } else {
      for (std::size_t index : indices) {
        r.y[at] += x.values[index] / static_cast<double>(indices.size());
        r.dx[index] += dy.values[at] / static_cast<double>(indices.size());
      }
    }
  }
  return r;
}

}  // namespace

TEST_CASE("pooling and its gradient have the values of naive loops") {
  const auto backend = backend_under_test({.threads = 2});
  const DType dtype = GENERATE(DType::float32, DType::bfloat16);
  const PoolMode mode = GENERATE(PoolMode::max, PoolMode::average);
  const double tolerance = dtype == DType::float32 ? 1e-6 : 1e-2;
  for (const Case& c : cases) {
    CAPTURE(name_of(dtype), mode == PoolMode::max, to_string(c.x));
    const Value x = random_value(c.x, dtype, 1);
    const Value dy = random_value({c.x[0], c.window.output(0, c.x[1]), c.window.output(1, c.x[2]), c.x[3]}, dtype, 2);
    const Result r = reference(c, mode, x, dy);
    const auto forward = run_op(*backend, std::make_shared<Pool2d>(mode, c.window, true), {x});
    CHECK(largest_error(forward[0], r.y) < tolerance);
    std::vector<Value> inputs{dy};
    if (mode == PoolMode::max) {
      CHECK(largest_error(forward[1], r.winners) == 0);
      inputs.push_back(forward[1]);
    }
    CHECK(largest_error(run_op(*backend, std::make_shared<Pool2dGrad>(mode, c.window, c.x), inputs)[0], r.dx) <
          tolerance);
  }
}

TEST_CASE("max pooling with a relu is the relu of max pooling, and its gradient is zero where the relu's is") {
  const auto backend = backend_under_test({.threads = 2});
  const DType dtype = GENERATE(DType::float32, DType::bfloat16);
  for (const Case& c : cases) {
    CAPTURE(name_of(dtype), to_string(c.x));
    const Value x = random_value(c.x, dtype, 1, -1, 0.3);  // many maxima are negative
    Value dy = random_value({c.x[0], c.window.output(0, c.x[1]), c.window.output(1, c.x[2]), c.x[3]}, dtype, 2);
    Result r = reference(c, PoolMode::max, x, dy);
    Value masked = dy;
    std::size_t negative = 0;
    for (std::size_t i = 0; i < r.y.size(); ++i) {
      if (r.y[i] > 0) continue;
      ++negative;
      r.y[i] = masked.values[i] = 0;
    }
    CHECK(negative > r.y.size() / 20);
    r.dx = reference(c, PoolMode::max, x, masked).dx;
    const auto pooled = run_op(*backend, std::make_shared<Pool2d>(PoolMode::max, c.window, true, true), {x});
    CHECK(largest_error(pooled[0], r.y) == 0);
    const auto gradient = std::make_shared<Pool2dGrad>(PoolMode::max, c.window, c.x);
    CHECK(largest_error(run_op(*backend, gradient, {dy, pooled[1]})[0], r.dx) <
          (dtype == DType::float32 ? 1e-6 : 1e-2));
    const auto inference = std::make_shared<Pool2d>(PoolMode::max, c.window, false, true);
    CHECK(largest_error(run_op(*backend, inference, {x})[0], r.y) == 0);
  }
}

TEST_CASE("global average pooling and its gradient follow their definition") {
  const auto backend = backend_under_test({.threads = 2});
  const DType dtype = GENERATE(DType::float32, DType::bfloat16);
  const Value x = random_value({3, 5, 4, 70}, dtype, 1), dy = random_value({3, 70}, dtype, 2);
  std::vector<double> y(3 * 70), dx(x.values.size());
  for (std::size_t i = 0; i < x.values.size(); ++i) {
    const std::size_t at = i / (20 * 70) * 70 + i % 70;
    y[at] += x.values[i] / 20;
    dx[i] = dy.values[at] / 20;
  }
  const double tolerance = dtype == DType::float32 ? 1e-6 : 1e-2;
  CHECK(largest_error(run_op(*backend, std::make_shared<GlobalAveragePool2d>(), {x})[0], y) < tolerance);
  CHECK(largest_error(run_op(*backend, std::make_shared<GlobalAveragePool2dGrad>(x.type.shape), {dy})[0], dx) <
        tolerance);
}

TEST_CASE("a NaN anywhere in a window is its maximum") {
  const auto backend = backend_under_test({.threads = 1});
  const Window window{{2, 2}, {2, 2}, {1, 1}, {0, 0}, {0, 0}};
  for (std::size_t index = 0; index < 4; ++index) {
    Value x = random_value({1, 2, 2, 16}, DType::float32, 1);
    for (std::size_t k = 0; k < 16; ++k) x.values[index * 16 + k] = std::numeric_limits<double>::quiet_NaN();
    CAPTURE(index);
    for (const bool relu : {false, true}) {
      const Value y = run_op(*backend, std::make_shared<Pool2d>(PoolMode::max, window, true, relu), {x})[0];
      for (const double value : y.values) CHECK(std::isnan(value));
    }
  }
}

}  // namespace trainctl::test::pool2d_test
