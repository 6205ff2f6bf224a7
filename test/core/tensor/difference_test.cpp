// Compares the differences that are found in random values with those that were made.
#include "core/tensor/difference.h"

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "test/catch.h"

namespace trainctl::difference_test {
namespace {

std::vector<float> random_values(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<float> values(count);
  for (float& value : values) value = std::normal_distribution<float>()(random);
  return values;
}

}  // namespace

TEST_CASE("a difference counts changed elements and finds the largest change") {
  const std::vector<float> a = random_values(1000, 1);
  CHECK(difference(a, a).equal());
  CHECK(difference(a, a).elements == 1000);

  std::vector<float> b = a;
  b[17] = a[17] + 0.25f;
  b[500] = a[500] * 3;  // relative: 2/3
  b[999] = std::nextafter(a[999], 100.0f);
  const Difference found = difference(a, b);
  CHECK(found.differing == 3);
  const double at_17 = std::abs(double{b[17]} - a[17]), at_500 = std::abs(double{b[500]} - a[500]);
  CHECK(found.largest_absolute == std::max(at_17, at_500));
  const double relative_17 = at_17 / std::max(std::abs(double{a[17]}), std::abs(double{b[17]}));
  CHECK(found.largest_relative == Approx(std::max(relative_17, 2.0 / 3)).epsilon(1e-6));

  Difference sum = found;
  sum.add(difference(a, a));
  CHECK(sum.elements == 2000);
  CHECK(sum.differing == 3);
}

TEST_CASE("bits are compared: a NaN equals itself, and zeros differ by their sign") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> a{nan, 0.0f, 1.0f}, b{nan, -0.0f, nan};
  const Difference found = difference(a, b);
  CHECK(found.differing == 2);
  CHECK(std::isinf(found.largest_absolute));
  CHECK(difference(std::vector<float>{0.0f}, std::vector<float>{-0.0f}).largest_relative == 0);
}

}  // namespace trainctl::difference_test
