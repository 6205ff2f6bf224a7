// Compares sums without rounding with sums in 128-bit integers and in other orders.
#include "core/metrics/exact_sum.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "test/catch.h"

namespace trainctl::exact_sum_test {
namespace {

double sum_of(const std::vector<float>& values) {
  ExactSum sum;
  for (const float value : values) sum.add(value);
  return sum.value();
}

}  // namespace

TEST_CASE("values of similar size are added like integers") {
  std::mt19937 random(3);
  for (int trial = 0; trial < 200; ++trial) {
    const int exponent = static_cast<int>(random() % 190) - 110;
    std::vector<float> values;
    __int128 units = 0;  // the sum in units of 2^exponent
    for (int i = 0; i < 1000; ++i) {
      const auto mantissa = static_cast<std::int64_t>(random() % (1 << 25)) - (1 << 24);
      const int shift = static_cast<int>(random() % 20);
      values.push_back(std::ldexp(static_cast<float>(mantissa), shift + exponent));
      units += static_cast<__int128>(mantissa) << shift;
    }
    CHECK(sum_of(values) == std::ldexp(static_cast<double>(static_cast<std::int64_t>(units)), exponent));
  }
}

TEST_CASE("the sum of values of any size does not depend on their order and grouping") {
  std::mt19937 random(4);
  for (int trial = 0; trial < 100; ++trial) {
    std::vector<float> values;
    while (values.size() < 500) {
      const auto value = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
      if (std::isfinite(value)) values.push_back(value);
    }
    const double whole = sum_of(values);
    std::shuffle(values.begin(), values.end(), random);
    ExactSum::Words words{};
    for (std::size_t begin = 0, end = 0; begin < values.size(); begin = end) {  // as ranks add their words
      end = std::min(values.size(), begin + 1 + random() % 50);
      ExactSum part;
      for (std::size_t i = begin; i < end; ++i) part.add(values[i]);
      std::transform(words.begin(), words.end(), part.words().begin(), words.begin(), std::plus());
    }
    ExactSum sum;
    sum.set_words(words);
    CHECK(sum.value() == whole);
    for (float& value : values) value = -value;
    CHECK(sum_of(values) == -whole);
  }
}

TEST_CASE("the smallest and largest values are added exactly, and the sum is NaN if a value is not finite") {
  constexpr float tiny = std::numeric_limits<float>::denorm_min(), huge = std::numeric_limits<float>::max();
  CHECK(sum_of({}) == 0);
  CHECK(sum_of({huge, tiny, -huge}) == static_cast<double>(tiny));
  CHECK(sum_of({huge, huge, huge}) == 3 * static_cast<double>(huge));
  CHECK(sum_of({1.0f, 0x1p-60f, -1.0f}) == 0x1p-60);
  CHECK(sum_of({-1.5f, 0.25f, 1.25f}) == 0);
  CHECK(std::isnan(sum_of({1, std::numeric_limits<float>::infinity()})));
  CHECK(std::isnan(sum_of({std::numeric_limits<float>::quiet_NaN(), 1})));
}

}  // namespace trainctl::exact_sum_test
