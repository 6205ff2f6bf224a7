// Tests the flight records of real ranks: what inspect shows after a rank was killed, and warnings about a slow rank.
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

#include "core/base/format.h"
#include "test/catch.h"
#include "test/support/command.h"
#include "test/support/configs.h"

namespace trainctl::test::flight_runs_test {
namespace {

std::string write_config(const Folder& folder) {
  return folder.write("long.yaml", R"(
data: {dataset: synthetic, samples: 960, shape: [40, 40, 3], classes: 5}
log: {every: 1 steps}
checkpoint: {every: 1000 epochs}
model:
  layers:
    - conv2d: {name: c1, filters: 24, kernel_size: 3, padding: same, activation: relu}
    - conv2d: {name: c2, filters: 24, kernel_size: 3, padding: same, activation: relu}
    - global_average_pooling2d
    - dense: {name: fc, units: 5, activation: softmax}
)" + train_section("batch_size: 96, epochs: 100000, optimizer: {name: sgd, learning_rate: 1e-4}"));
}

// Lets a rank run a fifth of the time, for half a second.
void slow_down(pid_t rank) {
  for (int pulse = 0; pulse < 10; ++pulse) {
    kill(rank, SIGSTOP);
    usleep(40'000);
    kill(rank, SIGCONT);
    usleep(10'000);
  }
}

TEST_CASE("inspect --flight shows what each rank did when one was killed") {
  const Folder folder;
  const std::string config = write_config(folder), directory = folder / "killed";
  Command run(folder, {"run", config, "--ranks", "3", "--device", "cpu", "--run-dir", directory, "--progress", "none"});
  REQUIRE(comes_true([&] { return events(directory, "step").size() > 20; }));
  const pid_t killed = run.ranks().at(1);
  slow_down(killed);  // so that the others wait for it, and it for no other rank
  kill(killed, SIGSTOP);
  usleep(300'000);
  kill(killed, SIGKILL);
  CHECK(run.wait() == 5);
  INFO(tail(run.errors()));
  const auto last = events(directory, "step").back().at("step").get<std::int64_t>();
  const Finished shown = trainctl(folder, {"inspect", directory, "--flight", "--json"});
  INFO(shown.out);
  REQUIRE(shown.code == 0);
  const Json json = Json::parse(shown.out);
  REQUIRE(json.at("ranks").size() == 3);
  for (int rank = 0; rank < 3; ++rank) {
    const Json& row = json.at("ranks")[static_cast<std::size_t>(rank)];
    CHECK(row.at("rank") == rank);
    const auto step = row.at("step").get<std::int64_t>();
    CHECK(step >= last);  // rank 0 has logged this step
    CHECK(step <= last + 2);
  }
  CHECK(json.at("ranks")[1].at("process") == killed);
  const Json& divergence = json.at("divergence");
  REQUIRE(divergence.is_object());
  CHECK(divergence.at("missing") == std::vector<int>{1});
  CHECK(divergence.at("entered") == std::vector<int>{0, 2});
  CHECK(divergence.at("call") == "all_reduce of bucket 0 (c1 ... fc)");
  CHECK(divergence.at("step") >= json.at("ranks")[1].at("step"));  // it may not have begun this step
  const Finished table = trainctl(folder, {"inspect", directory, "--flight"});
  CHECK(contains(table.out, "unchanged for"));
  CHECK(contains(table.out, "The ranks diverge first at step "));
  CHECK(contains(table.out, "ranks 0 and 2 entered it; rank 1 did not."));
}

TEST_CASE("inspect --flight refuses a run without records, and another checkpoint beside it") {
  const Folder folder;
  std::filesystem::create_directories(folder / "empty/flight");
  CHECK(trainctl(folder, {"inspect", folder / "absent", "--flight"}).code == 2);
  const Finished empty = trainctl(folder, {"inspect", folder / "empty", "--flight"});
  CHECK(empty.code == 3);
  CHECK(contains(empty.errors, "the folder holds no flight record"));
  CHECK(trainctl(folder, {"inspect", folder / "empty", folder / "empty", "--flight"}).code == 2);
}

TEST_CASE("a rank that is slowed down is named as a straggler, once") {
  const Folder folder;
  const std::string config = write_config(folder), directory = folder / "slow";
  Command run(folder, {"run", config, "--ranks", "2", "--device", "cpu", "--run-dir", directory, "--progress", "none"});
  REQUIRE(comes_true([&] { return events(directory, "step").size() > 5; }));
  const pid_t slow = run.ranks().at(1);
  const bool is_told = comes_true([&] {
    slow_down(slow);
    return contains(run.errors(), "rank 1 is a straggler: the other ranks wait");
  });
  INFO(tail(run.errors()));
  CHECK(is_told);
  CHECK(count(run.errors(), "is a straggler") == 1);
  run.send(SIGINT);
  CHECK(run.wait() == 75);
}

// A rehearsed fault delays rank 1 in each step after 30 steps. On a busy machine, more comparisons than usual may be
// needed until enough of them agree.
TEST_CASE("a rank that is slow from a step on is named with its computing as the reason", "[waits]") {
  struct Case {
    int ranks;
    std::string setting;
  };
  const Folder folder;
  const std::string config = write_config(folder);
  int number = 0;
  for (const Case& c : std::vector<Case>{{2, "strategy.data=auto"},
                                         {4, "strategy.data=auto"},
                                         {2, "strategy.shard=parameters"},
                                         {4, "strategy.shard=optimizer"},
                                         {2, "strategy.pipeline=2"},
                                         {4, "strategy.pipeline=2"}}) {
    CAPTURE(c.ranks, c.setting);
    std::vector<std::string> words{"run", config, "--ranks", std::to_string(c.ranks), "--device", "cpu"};
    words.insert(words.end(), {"--run-dir", folder / format("named-{}", ++number), "--progress", "none"});
    for (const std::string& setting :
         {c.setting, std::string("data.samples=96"), std::string("data.shape=[8, 8, 3]"),
          std::string("faults=[{slow: {rank: 1, step: 30, steps: 100000, delay: 30 ms}}]")}) {
      words.insert(words.end(), {"--set", setting});
    }
    Command run(folder, words);
    const std::string begin = "rank 1 is a straggler: the other ranks wait ";
    const std::string reason = "% of a step for it; its computing takes";
    const bool is_named = comes_true([&] {
      const std::string errors = run.errors();
      return contains(errors, begin) && contains(errors, reason);
    });
    const std::string errors = run.errors();
    run.send(SIGINT);
    CHECK(run.wait() == 75);
    INFO(tail(errors));
    REQUIRE(is_named);
    const std::size_t end = errors.find(reason);
    const int percent = std::stoi(errors.substr(errors.rfind("wait ", end) + 5));
    CHECK(percent >= 10);
    CHECK(percent <= 100);
  }
}

}  // namespace
}  // namespace trainctl::test::flight_runs_test
