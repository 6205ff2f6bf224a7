// Tests that a stuck rank is named if GPUs compute, with communication through NCCL and through the hosts' memory. GPUs
// and NCCL are emulated.
#include "test/catch.h"
#include "test/runs/stuck_ranks.h"

namespace trainctl::test::stuck_rank_test {
namespace {

std::vector<std::string> stop_each(const std::string& communication, int ranks,
                                   const std::vector<std::string>& settings, const std::vector<int>& stopped) {
  const Folder folder;
  stuck_config(folder);
  std::vector<StuckRun> runs;
  for (const int rank : stopped) {
    runs.push_back({ranks,
                    settings,
                    rank,
                    2,
                    {"--device", "cuda", "--set", "cluster.communication=" + communication},
                    {"TRAINCTL_EMULATED_GPUS=" + std::to_string(ranks)}});
  }
  return problems_of(folder, runs);
}

TEST_CASE("a stuck rank is named through NCCL") {
  CHECK(stop_each("nccl", 2, {}, {0, 1}) == std::vector<std::string>{});
  CHECK(stop_each("nccl", 2, {"strategy.pipeline=2"}, {0, 1}) == std::vector<std::string>{});
  CHECK(stop_each("nccl", 4, {"strategy.tensor=2"}, {3}) == std::vector<std::string>{});
  CHECK(stop_each("nccl", 4, {"strategy.pipeline=2", "strategy.tensor=2"}, {1, 2}) == std::vector<std::string>{});
}

TEST_CASE("a stuck rank is named through the hosts' memory") {
  CHECK(stop_each("staged", 2, {"strategy.shard=optimizer"}, {0, 1}) == std::vector<std::string>{});
  CHECK(stop_each("staged", 2, {"strategy.pipeline=2"}, {0, 1}) == std::vector<std::string>{});
  CHECK(stop_each("staged", 4, {"strategy.pipeline=2"}, {2}) == std::vector<std::string>{});
  CHECK(stop_each("staged", 4, {"strategy.pipeline=2", "strategy.tensor=2"}, {0, 3}) == std::vector<std::string>{});
}

}  // namespace
}  // namespace trainctl::test::stuck_rank_test
