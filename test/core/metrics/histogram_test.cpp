// Tests that histograms of parts of the values add up to the histogram of all values.
#include "core/metrics/histogram.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <random>

#include "test/catch.h"

namespace trainctl::test::histogram_test {
namespace {

// Returns random values; each bit pattern of float32 is equally likely.
std::vector<float> any_values(std::mt19937& random, int count) {
  std::vector<float> values;
  for (int i = 0; i < count; ++i) values.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(random())));
  return values;
}

bool holds(const Histogram::Bucket& bucket, double value) {
  return bucket.low < 0 ? value < 0 && value > bucket.low && value <= bucket.high
                        : value >= bucket.low && value < bucket.high;
}

TEST_CASE("a histogram's buckets do not overlap and count every finite value once") {
  std::mt19937 random(Catch::rngSeed());
  std::vector<float> values = any_values(random, 4000);
  values.insert(values.end(), {1, 1.125f, -1, -1.125f, 0});
  Histogram histogram;
  histogram.add(values);
  std::erase_if(values, [](float value) { return !std::isfinite(value); });
  CHECK(values.size() < 4005);
  CHECK(histogram.count() == std::ssize(values));
  const std::vector<Histogram::Bucket> buckets = histogram.filled();
  std::int64_t all = 0;
  for (std::size_t i = 0; i < buckets.size(); ++i) {
    const Histogram::Bucket& bucket = buckets[i];
    CAPTURE(bucket.low, bucket.high);
    CHECK(bucket.low < bucket.high);
    if (i > 0) CHECK(buckets[i - 1].high <= bucket.low);
    CHECK(bucket.count == std::ranges::count_if(values, [&](double value) { return holds(bucket, value); }));
    all += bucket.count;
  }
  CHECK(all == std::ssize(values));
}

TEST_CASE("histograms of parts add up to the histogram of all values, scaled or not") {
  std::mt19937 random(Catch::rngSeed());
  const double scale = GENERATE(1.0, 1.0 / 48);
  std::normal_distribution<float> normal(0.5f, 2);
  std::vector<float> values(1000);
  for (float& value : values) value = normal(random);
  const std::size_t cut = random() % 1000;
  Histogram whole, first, second;
  const std::span<const float> all = values;
  whole.add(all, scale);
  first.add(all.first(cut), scale);
  second.add(all.subspan(cut), scale);
  for (std::size_t i = 0; i < first.counts().size(); ++i) first.counts()[i] += second.counts()[i];
  for (std::size_t i = 0; i < 2; ++i) {
    first.sums()[i] += second.sums()[i];
    first.extremes()[i] = std::min(first.extremes()[i], second.extremes()[i]);
  }
  CHECK(std::ranges::equal(first.counts(), whole.counts()));
  CHECK(first.minimum() == whole.minimum());
  CHECK(first.maximum() == whole.maximum());
  double sum = 0, squares = 0;
  for (const float value : values) sum += value * scale, squares += value * scale * value * scale;
  CHECK(first.sum() == Approx(sum).epsilon(1e-5));
  CHECK(first.sum_of_squares() == Approx(squares).epsilon(1e-5));
  CHECK(whole.maximum() == Approx(*std::ranges::max_element(values) * scale));
}

}  // namespace
}  // namespace trainctl::test::histogram_test
