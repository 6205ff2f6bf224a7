// Tests permutations, splits and the positions of batches.
#include "io/loader/splits/order.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <set>

#include "io/loader/batches/batch_plan.h"
#include "test/catch.h"

namespace trainctl::order_test {
namespace {

RandomKey key(std::uint64_t seed, std::uint32_t epoch = 0) { return {seed, Purpose::shuffle, epoch}; }

// Computes Pearson's chi-squared statistic of counts that should all be `expected`. Returns how many standard
// deviations it is above its mean.
double deviation(const std::vector<int>& counts, double expected) {
  double chi = 0;
  for (int count : counts) chi += (count - expected) * (count - expected) / expected;
  const double freedom = static_cast<double>(counts.size()) - 1;
  return (chi - freedom) / std::sqrt(2 * freedom);
}

}  // namespace

TEST_CASE("a permutation maps the numbers below n onto themselves") {
  std::mt19937 random(1);
  for (int i = 0; i < 400; ++i) {
    const std::int64_t n = i < 200 ? i + 1 : static_cast<std::int64_t>(random() % 5000) + 1;
    const Permutation permutation(n, key(random()));
    std::vector<bool> seen(static_cast<std::size_t>(n));
    for (std::int64_t p = 0; p < n; ++p) {
      const std::int64_t sample = permutation(p);
      REQUIRE(sample >= 0);
      REQUIRE(sample < n);
      REQUIRE_FALSE(seen[static_cast<std::size_t>(sample)]);
      seen[static_cast<std::size_t>(sample)] = true;
    }
  }
}

TEST_CASE("a permutation of 10^18 samples is computed without a table") {
  const std::int64_t n = 1'000'000'007'000'000'007;
  const Permutation permutation(n, key(3));
  std::set<std::int64_t> images;
  for (std::int64_t p = 0; p < 10000; ++p) {
    const std::int64_t sample = permutation(p * 99'999'999'999'989);
    REQUIRE((sample >= 0 && sample < n));
    images.insert(sample);
  }
  CHECK(images.size() == 10000);
}

TEST_CASE("every sample comes to every position equally often") {
  for (std::int64_t n : {2, 3, 5, 10, 37}) {
    const int epochs = 20000;
    std::vector<int> counts(static_cast<std::size_t>(n * n));
    for (int epoch = 0; epoch < epochs; ++epoch) {
      const Permutation permutation(n, key(7, static_cast<std::uint32_t>(epoch)));
      for (std::int64_t p = 0; p < n; ++p) ++counts[static_cast<std::size_t>(p * n + permutation(p))];
    }
    INFO("n = " << n);
    CHECK(std::abs(deviation(counts, static_cast<double>(epochs) / static_cast<double>(n))) < 5);
  }
}

TEST_CASE("all orders of four samples come equally often") {
  std::vector<int> counts(256);
  const int epochs = 48000;
  for (int epoch = 0; epoch < epochs; ++epoch) {
    const Permutation permutation(4, key(11, static_cast<std::uint32_t>(epoch)));
    ++counts[static_cast<std::size_t>(permutation(0) + 4 * permutation(1) + 16 * permutation(2) + 64 * permutation(3))];
  }
  counts.erase(std::remove(counts.begin(), counts.end(), 0), counts.end());
  REQUIRE(counts.size() == 24);
  CHECK(std::abs(deviation(counts, epochs / 24.0)) < 5);
}

TEST_CASE("distances between the samples at neighbouring positions are those of a random order") {
  // The distances (modulo n) between the samples at neighbouring positions spread evenly over 64 bins. So do the
  // distances between the samples at positions that are 245 apart.
  const std::int64_t n = 60000;
  const Permutation permutation(n, key(5));
  std::vector<int> steps(64), jumps(64);
  for (std::int64_t p = 0; p + 300 < n; ++p) {
    const std::int64_t here = permutation(p);
    ++steps[static_cast<std::size_t>((permutation(p + 1) - here + n) % n * 64 / n)];
    ++jumps[static_cast<std::size_t>((permutation(p + 245) - here + n) % n * 64 / n)];  // 245: the width of the grid
  }
  CHECK(std::abs(deviation(steps, (n - 300) / 64.0)) < 5);
  CHECK(std::abs(deviation(jumps, (n - 300) / 64.0)) < 5);
}

TEST_CASE("another seed or epoch gives another order") {
  const std::int64_t n = 1000;
  const auto same = [&](const Permutation& a, const Permutation& b) {
    int count = 0;
    for (std::int64_t p = 0; p < n; ++p) count += a(p) == b(p);
    return count;
  };
  CHECK(same(Permutation(n, key(1, 0)), Permutation(n, key(1, 1))) < 10);
  CHECK(same(Permutation(n, key(1, 0)), Permutation(n, key(2, 0))) < 10);
  CHECK(same(Permutation(n, key(1, 0)), Permutation(n, key(1 + (1ull << 32), 0))) < 10);
}

TEST_CASE("a split divides all samples and depends on the seed only") {
  for (std::int64_t n : {2, 7, 100, 1797}) {
    const auto split = Subset::split(n, 0.25, 9);
    std::set<std::int64_t> all;
    for (const Subset* subset : {&split.training, &split.validation}) {
      for (std::int64_t i = 0; i < subset->size(); ++i) all.insert((*subset)[i]);
    }
    CHECK(split.validation.size() == std::max<std::int64_t>(1, std::llround(0.25 * static_cast<double>(n))));
    CHECK(split.training.size() + split.validation.size() == n);
    CHECK(static_cast<std::int64_t>(all.size()) == n);
    CHECK(*all.rbegin() == n - 1);
  }
  const auto a = Subset::split(1000, 0.1, 1), b = Subset::split(1000, 0.1, 1), c = Subset::split(1000, 0.1, 2);
  int equal = 0;
  for (std::int64_t i = 0; i < 100; ++i) {
    CHECK(a.validation[i] == b.validation[i]);
    equal += a.validation[i] == c.validation[i];
  }
  CHECK(equal < 10);
}

TEST_CASE("a stratified split holds out the same fraction of each class") {
  std::mt19937 random(4);
  std::vector<std::int32_t> labels(1000);
  for (std::int32_t& label : labels) label = static_cast<std::int32_t>(random() % 100 < 70 ? 0 : random() % 5);
  const auto split = Subset::stratified(
      1000, [&](std::int64_t i) { return labels[static_cast<std::size_t>(i)]; }, 0.2, 3);
  CHECK(split.validation.size() == 200);
  CHECK(split.training.size() == 800);
  std::vector<double> all(5), held_out(5);
  std::set<std::int64_t> seen;
  for (std::int32_t label : labels) ++all[static_cast<std::size_t>(label)];
  for (std::int64_t i = 0; i < 200; ++i) {
    ++held_out[static_cast<std::size_t>(labels[static_cast<std::size_t>(split.validation[i])])];
    seen.insert(split.validation[i]);
  }
  for (std::int64_t i = 0; i < 800; ++i) seen.insert(split.training[i]);
  CHECK(seen.size() == 1000);
  for (std::size_t c = 0; c < 5; ++c) CHECK(std::abs(held_out[c] - 0.2 * all[c]) <= 1);
  // The split does not simply hold out the first samples of each class.
  CHECK(split.validation[199] > 900);
}

TEST_CASE("batches cover an epoch from any start") {
  std::mt19937 random(2);
  for (int i = 0; i < 300; ++i) {
    const std::int64_t n = static_cast<std::int64_t>(random() % 50) + 1,
                       batch = static_cast<std::int64_t>(random() % 20) + 1;
    const DataPosition start{5, static_cast<std::int64_t>(random() % 3),
                             static_cast<std::int64_t>(random() % static_cast<unsigned>(n))};
    const BatchPlan plan(n, batch, start);
    DataPosition expected = start;
    for (std::int64_t k = 0; k < 40; ++k) {
      const BatchPlan::Entry entry = plan.at(k);
      REQUIRE(entry.position == expected);
      REQUIRE(entry.count >= 1);
      REQUIRE((entry.count == plan.batch_size() || entry.last_of_epoch));
      expected.offset += entry.count;
      REQUIRE(entry.last_of_epoch == (expected.offset == n));
      if (entry.last_of_epoch) expected = {5, expected.epoch + 1, 0};
      REQUIRE(plan.after(entry) == expected);
    }
  }
  const BatchPlan at_end(10, 4, {1, 2, 10});
  CHECK(at_end.at(0).position == DataPosition{1, 3, 0});
}

}  // namespace trainctl::order_test
