// Tests global max pooling with equal values, with NaN and with images of many pixels.
#include <cmath>
#include <limits>

#include "core/backend/select.h"
#include "core/graph/ops/images/global_max_pool2d.h"
#include "test/catch.h"
#include "test/core/backend/run_op.h"

namespace trainctl::test::global_max_pool2d_test {

TEST_CASE("the first of several equal values is the maximum, and NaN is larger than all values") {
  const auto backend = backend_under_test({.threads = 2});
  const DType dtype = GENERATE(DType::float32, DType::bfloat16);
  const std::int64_t channels = GENERATE(1, 5, 24);
  // There are few different random numbers: every image has several maxima. The first image also has NaNs, the second
  // one is -infinity everywhere.
  const Shape shape{3, 23, 41, channels};
  Value x = random_integers(shape, dtype, 5, 7);
  const std::int64_t pixels = shape[1] * shape[2];
  const auto at = [&](std::int64_t image, std::int64_t pixel, std::int64_t channel) {
    return static_cast<std::size_t>((image * pixels + pixel) * channels + channel);
  };
  for (const std::int64_t pixel : {501, 900}) x.values[at(0, pixel, 0)] = std::nan("");
  for (std::int64_t pixel = 0; pixel < pixels; ++pixel) {
    for (std::int64_t c = 0; c < channels; ++c) x.values[at(1, pixel, c)] = -std::numeric_limits<double>::infinity();
  }
  const Value dy = random_value({3, channels}, dtype, 6);
  const auto result = run_op(*backend, std::make_shared<GlobalMaxPool2d>(true), {x});
  const Value dx = run_op(*backend, std::make_shared<GlobalMaxPool2dGrad>(shape), {dy, result[1]})[0];
  CHECK(run_op(*backend, std::make_shared<GlobalMaxPool2d>(false), {x}).size() == 1);

  int wrong = 0;
  for (std::int64_t image = 0; image < 3; ++image) {
    for (std::int64_t c = 0; c < channels; ++c) {
      std::int64_t winner = 0;
      for (std::int64_t pixel = 1; pixel < pixels; ++pixel) {
        const double value = x.values[at(image, pixel, c)], best = x.values[at(image, winner, c)];
        if (!std::isnan(best) && (std::isnan(value) || value > best)) winner = pixel;
      }
      const auto index = static_cast<std::size_t>(image * channels + c);
      const double largest = x.values[at(image, winner, c)], found = result[0].values[index];
      wrong += found != largest && !(std::isnan(found) && std::isnan(largest));
      wrong += result[1].values[index] != static_cast<double>(winner);
      for (std::int64_t pixel = 0; pixel < pixels; ++pixel) {
        wrong += dx.values[at(image, pixel, c)] != (pixel == winner ? dy.values[index] : 0);
      }
    }
  }
  CHECK(wrong == 0);
}

}  // namespace trainctl::test::global_max_pool2d_test
