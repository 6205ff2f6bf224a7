// Tests the memory that a rank may use: the available memory, or the limit of the config if that is less.
#include "parallel/launch/plan.h"
#include "parallel/strategies/options.h"
#include "parallel/trainer/options.h"
#include "run/job/device.h"
#include "test/catch.h"

namespace trainctl::memory_test {

TEST_CASE("cluster.memory lowers what a rank may use, and never raises it") {
  ClusterOptions cluster;
  const auto of = [&](std::int64_t available) { return memory_of_rank(cluster, available); };
  CHECK(of(1000).bytes == 1000);
  CHECK(of(0).bytes == 0);
  cluster.memory.given = Size{800};
  CHECK((of(1000).bytes == 800 && of(1000).given));
  CHECK((of(500).bytes == 500 && !of(500).given));
  CHECK((of(0).bytes == 800 && of(0).given));
}

TEST_CASE("ranks on other hosts have the memory that the config sets") {
  const auto backend =
      make_backend(ClusterOptions{.device = DeviceChoice::cpu}, TrainOptions{}, StrategyOptions{}, 1, 0);
  ClusterOptions cluster;
  cluster.memory.given = Size{std::int64_t{1} << 60};  // more than any machine has
  LaunchPlan plan{.ranks = 4, .one_host = true};
  CHECK_FALSE(memory_of_rank(cluster, *backend, plan).given);
  CHECK(memory_of_rank(cluster, *backend, plan).bytes < std::int64_t{1} << 50);
  plan.one_host = false;
  CHECK(memory_of_rank(cluster, *backend, plan).bytes == std::int64_t{1} << 60);
  cluster.memory.given.reset();
  CHECK(memory_of_rank(cluster, *backend, plan).bytes == 0);
}

}  // namespace trainctl::memory_test
