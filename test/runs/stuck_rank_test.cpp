// Tests that a stuck rank is named, whichever it is and under every strategy.
#include <filesystem>

#include "core/base/format.h"
#include "test/catch.h"
#include "test/runs/stuck_ranks.h"
#include "test/support/command.h"
#include "test/support/configs.h"
#include "test/support/files.h"

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

// Reading the table takes rank 1 longer than a rank may be silent, which a busy machine must not be.
constexpr int timeout = 3 * sanitizer_slowdown, slow = 3 * timeout;

// Writes the table, which each rank reads before its first step, and a config; returns the path of the config.
std::string slow_config(const Folder& folder) {
  std::string table = "a,b,target\n";
  for (int i = 0; i < 64; ++i) table += format("{},{},{}\n", 7 * i % 13, 3 * i % 17 - 8, i % 3);
  folder.write("table.csv", table);
  return folder.write("slow.yaml", R"(
data: {dataset: csv, path: table.csv, target: target, classes: 3}
model: {layers: [{dense: {units: 8, activation: relu}}, {dense: {units: 3}}]}
)" + train_section("batch_size: 16, epochs: 1, optimizer: {name: sgd, learning_rate: 0.1}"));
}

// Runs a command of trainctl on two ranks, of which rank 1 reads slowly; returns its exit code and its errors.
std::pair<int, std::string> finished(const Folder& folder, std::vector<std::string> words, int start_timeout) {
  words.insert(words.end(), {"--ranks", "2", "--quiet", "--device", "cpu"});
  words.insert(words.end(), {"--set", format("cluster.timeout={} s", timeout)});
  words.insert(words.end(), {"--set", format("cluster.start_timeout={} s", start_timeout)});
  const std::string file = std::filesystem::canonical(folder / "table.csv");
  Command command(folder, words, ".",
                  {"LD_PRELOAD=" TRAINCTL_BLOCKED_READ_LIBRARY, "TRAINCTL_BLOCKED_FILE=" + file, "TRAINCTL_SLOW_RANK=1",
                   format("TRAINCTL_SLOW_SECONDS={}", slow)});
  const int code = command.wait();
  return {code, command.errors()};
}

TEST_CASE("a rank may prepare its training for longer than it may be silent in a step", "[waits]") {
  const Folder folder;
  const std::string config = slow_config(folder);
  const auto [code, errors] = finished(folder, {"run", config, "--run-dir", folder / "slow"}, 10 * slow);
  CAPTURE(errors);
  CHECK(code == 0);
  const auto [limited_code, limited_errors] =
      finished(folder, {"run", config, "--run-dir", folder / "limited"}, timeout);
  CAPTURE(limited_errors);
  CHECK(limited_code == 5);
  CHECK(contains(limited_errors, format("rank 1 did not arrive within {} s", timeout)));
}

TEST_CASE("a rank may prepare what bench measures for longer than it may be silent in a step", "[waits]") {
  const Folder folder;
  const std::vector<std::string> bench = {"bench", "step", slow_config(folder), "--seconds", "0.1"};
  const auto [code, errors] = finished(folder, bench, 10 * slow);
  CAPTURE(errors);
  CHECK(code == 0);
  const auto [limited_code, limited_errors] = finished(folder, bench, timeout);
  CAPTURE(limited_errors);
  CHECK(limited_code == 5);
  CHECK(contains(limited_errors, format("rank 1 did not arrive within {} s", timeout)));
}

}  // namespace
}  // namespace trainctl::test::stuck_rank_test
