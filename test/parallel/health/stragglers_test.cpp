// Tests that a straggler is found, with its reason and its cost, and told once.
#include "parallel/health/stragglers.h"

#include <random>

#include "test/catch.h"

namespace trainctl::test::stragglers_test {
namespace {

// The times of ranks that take `data` and `computing` seconds for each step, wait for `late` more seconds elsewhere,
// and then wait for the slowest of them.
std::vector<RankSeconds> times_of(const std::vector<double>& data, const std::vector<double>& computing,
                                  const std::vector<double>& elsewhere, std::int64_t steps) {
  constexpr double transfer = 2e-3;
  double slowest = 0;
  for (std::size_t i = 0; i < data.size(); ++i) slowest = std::max(slowest, data[i] + computing[i] + elsewhere[i]);
  std::vector<RankSeconds> times;
  const auto count = static_cast<double>(steps);
  for (std::size_t i = 0; i < data.size(); ++i) {
    const double waits = slowest - data[i] - computing[i] - elsewhere[i];
    times.push_back(
        {count * (slowest + transfer), count * data[i], count * computing[i], count * (waits + transfer), steps});
  }
  return times;
}

TEST_CASE("the slowest rank is found with the reason why it is slow and the share of a step that the others wait") {
  std::mt19937 random(std::random_device{}());
  std::uniform_real_distribution<double> any(0, 1);
  for (int round = 0; round < 300; ++round) {
    const std::size_t ranks = 2 + random() % 15;
    std::vector<double> data(ranks), computing(ranks), elsewhere(ranks);
    std::vector<int> all(ranks);
    for (std::size_t i = 0; i < ranks; ++i) {
      all[i] = static_cast<int>(i);
      data[i] = 1e-3 * any(random);
      computing[i] = 70e-3 + 1e-3 * any(random);
    }
    const std::size_t late = random() % ranks;
    const int reason = static_cast<int>(random() % 4);  // 3: none
    const double delay = (reason == 2 ? 25e-3 : 15e-3) + 60e-3 * any(random);
    if (reason < 3) (reason == 0 ? data : reason == 1 ? computing : elsewhere)[late] += delay;
    const auto found = find_straggler(all, times_of(data, computing, elsewhere, 1 + static_cast<int>(random() % 50)));
    if (reason == 3) {
      CHECK_FALSE(found);
      continue;
    }
    REQUIRE(found);
    CHECK(found->rank == static_cast<int>(late));
    CHECK(found->why == (reason == 0 ? Lateness::data : reason == 1 ? Lateness::compute : Lateness::network));
    const double step = 70e-3 + 2e-3 + delay;
    CHECK(found->share == Approx(delay / step).epsilon(0.15));
    std::vector<RankSeconds> times = times_of(data, computing, elsewhere, 10);
    times[late].all -= 10 * delay;  // the rank has left out the time of the delay
    CHECK(find_straggler(all, times).value().share == Approx(delay / step).epsilon(0.15));
    if (reason < 2) CHECK(found->own - found->others == Approx(delay).margin(2.1e-3));
  }
}

TEST_CASE("only ranks of one stage are compared, and a hot GPU is named as the reason") {
  const std::vector<RankSeconds> times = times_of({0, 0, 0, 0}, {0.01, 0.01, 0.09, 0.09}, {0, 0, 0, 0}, 10);
  const std::vector<int> first{0, 1}, second{2, 3};
  CHECK_FALSE(find_straggler(first, times));
  CHECK_FALSE(find_straggler(second, times));
  const std::vector<int> hot{1};
  const auto found = find_straggler(first, times_of({0, 0}, {0.05, 0.08}, {0, 0}, 10), hot);
  REQUIRE(found);
  CHECK(found->why == Lateness::thermal);
}

TEST_CASE("a rank that no other rank equals is compared with its own fastest steps") {
  std::mt19937 random(std::random_device{}());
  std::uniform_real_distribution<double> any(0, 1);
  for (int round = 0; round < 200; ++round) {
    const std::size_t ranks = 2 + random() % 4, late = random() % ranks;
    std::vector<double> data(ranks), computing(ranks);
    std::vector<int> all(ranks);
    for (std::size_t i = 0; i < ranks; ++i) {
      all[i] = static_cast<int>(i);
      computing[i] = 20e-3 + 60e-3 * any(random);
    }
    const std::vector<double> nothing(ranks);
    const auto noisy = [&](std::vector<double> seconds) {
      for (double& each : seconds) each += 1e-3 * any(random);
      return seconds;
    };
    StragglersOfUnlike stragglers;
    for (int i = 0; i < 5; ++i) {
      CHECK_FALSE(stragglers.add(all, times_of(noisy(data), noisy(computing), nothing, 10)));
    }
    const int reason = static_cast<int>(random() % 3);  // 2: all ranks become slower
    const double delay = 20e-3 + 40e-3 * any(random);
    for (std::size_t i = 0; i < ranks; ++i) {
      if (i == late || reason == 2) (reason == 0 ? data : computing)[i] += delay;
    }
    const auto found = stragglers.add(all, times_of(noisy(data), noisy(computing), nothing, 10));
    REQUIRE(found.has_value() == (reason < 2));
    if (!found) continue;
    CHECK(found->rank == static_cast<int>(late));
    CHECK(found->why == (reason == 0 ? Lateness::data : Lateness::compute));
    CHECK(found->own - found->others == Approx(delay).margin(1.1e-3));
    CHECK(describe(*found, std::vector<std::string>(ranks, "n1")).find(" before") != std::string::npos);
  }
}

TEST_CASE("a straggler is reported after three comparisons, and again only when its rank or its reason changes") {
  StragglerNews news;
  const Straggler slow{.rank = 1, .why = Lateness::data}, other{.rank = 1, .why = Lateness::compute};
  const auto told = [&](const std::optional<Straggler>& found, int times) {
    int count = 0;
    for (int i = 0; i < times; ++i) count += news.add(found) ? 1 : 0;
    return count;
  };
  CHECK(told(slow, 2) == 0);
  CHECK(told({}, 1) == 0);
  CHECK(told(slow, 2) == 0);
  CHECK(told(slow, 1) == 1);
  CHECK(told(slow, 50) == 0);
  CHECK(told({}, 2) == 0);  // too short a pause
  CHECK(told(slow, 9) == 0);
  CHECK(told(other, 3) == 1);
  CHECK(told({}, 3) == 0);
  CHECK(told(other, 3) == 1);
}

TEST_CASE("short comparisons count half") {
  StragglerNews news;
  const Straggler slow{.rank = 1, .why = Lateness::data}, other{.rank = 0, .why = Lateness::data};
  for (int i = 0; i < 5; ++i) CHECK_FALSE(news.add(slow, true));
  CHECK_FALSE(news.add(other, true));
  for (int i = 0; i < 5; ++i) CHECK_FALSE(news.add(slow, true));
  CHECK_FALSE(news.has_reported());
  CHECK(news.add(slow, true));
  CHECK(news.has_reported());
  for (int i = 0; i < 2; ++i) CHECK_FALSE(news.add(other));
  CHECK(news.add(other));
}

TEST_CASE("a straggler is described with its host, its cost and what is slow") {
  const Straggler slow{.rank = 3, .why = Lateness::data, .share = 0.18, .own = 0.041, .others = 0.002, .seconds = 0.12};
  CHECK(describe(slow, {"n1", "n1", "n2", "n2"}) ==
        "rank 3 on host n2 is a straggler: the other ranks wait 18 % of a step for it; its data reading takes 41 ms of "
        "120 ms, and 2 ms on the other ranks");
}

}  // namespace
}  // namespace trainctl::test::stragglers_test
