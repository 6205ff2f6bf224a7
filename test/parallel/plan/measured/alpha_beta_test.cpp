// Tests that alpha and beta are found from times that were computed with them.
#include "parallel/plan/measured/alpha_beta.h"

#include <cmath>
#include <functional>
#include <random>

#include "test/catch.h"

namespace trainctl::alpha_beta_test {
namespace {

// Sizes from 64 bytes to 64 MB, each four times the one before, with times that random noise changes by a few percent.
std::vector<TimedSize> timed(const std::function<double(double)>& seconds, double noise, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> factor(1 - noise, 1 + noise);
  std::vector<TimedSize> sizes;
  for (double bytes = 64; bytes <= 64 << 20; bytes *= 4) sizes.push_back({bytes, seconds(bytes) * factor(random)});
  return sizes;
}

}  // namespace

TEST_CASE("the fit of times on one line has their alpha and beta") {
  for (unsigned seed = 0; seed < 50; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    const double alpha = std::exp(std::uniform_real_distribution<double>(-14, -8)(random));
    const double beta = std::exp(std::uniform_real_distribution<double>(-25, -18)(random));
    const AlphaBeta model(timed([&](double bytes) { return alpha + beta * bytes; }, 0.02, seed));
    REQUIRE(model.pieces().size() == 1);
    CHECK(model.latency() == Approx(alpha).epsilon(0.03));
    CHECK(model.pieces()[0].beta == Approx(beta).epsilon(0.03));
    CHECK(model.seconds(3e8) == Approx(alpha + beta * 3e8).epsilon(0.03));  // larger than the measured sizes
  }
}

TEST_CASE("a curve with bends is fitted by several pieces, which are close to it everywhere") {
  // A cache of 1 MB, beyond which each byte takes four times as long; up to 4 kB another protocol.
  const auto seconds = [](double bytes) {
    if (bytes <= 4096) return 1e-6 + 5e-11 * bytes;
    if (bytes <= 1 << 20) return 3e-6 + 1e-10 * bytes;
    return 3e-6 + 1e-10 * (1 << 20) + 4e-10 * (bytes - (1 << 20));
  };
  for (unsigned seed = 0; seed < 20; ++seed) {
    CAPTURE(seed);
    const AlphaBeta model(timed(seconds, 0.02, seed));
    CHECK(model.pieces().size() == 3);
    CHECK(model.latency() == Approx(1e-6).epsilon(0.05));
    CHECK(model.pieces().back().beta == Approx(4e-10).epsilon(0.05));
    for (double bytes = 64; bytes <= 64 << 20; bytes *= 1.3) {
      if (bytes > 4096 && bytes < 16384) continue;  // no measured size shows where the protocol changes
      CAPTURE(bytes);
      CHECK(model.seconds(bytes) == Approx(seconds(bytes)).epsilon(0.08));
    }
  }
}

TEST_CASE("one size gives a latency only, and neither latency nor beta is negative") {
  CHECK(AlphaBeta({{4096, 2e-6}}).seconds(1e6) == Approx(2e-6));
  const AlphaBeta falling({{64, 3e-6}, {256, 2e-6}, {1024, 1e-6}});
  CHECK(falling.pieces()[0].beta == 0);
  CHECK(AlphaBeta({{1e6, 1e-3}, {2e6, 3e-3}}).latency() == 0);
}

}  // namespace trainctl::alpha_beta_test
