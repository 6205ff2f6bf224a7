// Tests that a stuck rank is named, whichever it is and under every strategy.
#include "test/catch.h"
#include "test/runs/stuck_ranks.h"

namespace trainctl::test::stuck_rank_test {
namespace {

// Suspends each rank in turn, each after another step, so that some are suspended during a validation or a checkpoint.
std::vector<std::string> stop_each(const std::vector<std::pair<int, std::vector<std::string>>>& strategies) {
  const Folder folder;
  stuck_config(folder);
  std::vector<StuckRun> runs;
  for (const auto& [ranks, settings] : strategies) {
    for (int rank = 0; rank < ranks; ++rank) {
      runs.push_back({ranks, settings, rank, static_cast<int>(runs.size() % 13) + 1, {"--device", "cpu"}, {}});
    }
  }
  return problems_of(folder, runs);
}

TEST_CASE("a stuck rank is named under every strategy") {
  CHECK(stop_each({{2, {}},
                   {2, {"strategy.shard=optimizer"}},
                   {2, {"strategy.shard=gradients"}},
                   {2, {"strategy.shard=parameters"}},
                   {2, {"strategy.reproducible.shards=2"}},
                   {2, {"strategy.pipeline=2"}},
                   {2, {"strategy.tensor=2"}}}) == std::vector<std::string>{});
}

TEST_CASE("a stuck rank is named under every combination of two strategies") {
  CHECK(stop_each({{4, {"strategy.pipeline=2"}},
                   {4, {"strategy.tensor=2"}},
                   {4, {"strategy.pipeline=2", "strategy.tensor=2"}}}) == std::vector<std::string>{});
}

}  // namespace
}  // namespace trainctl::test::stuck_rank_test
