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
data: {dataset: synthetic, samples: 480, shape: [24, 24, 3], classes: 5}
log: {every: 1 steps}
checkpoint: {every: 1000 epochs}
model:
  layers:
    - conv2d: {name: c1, filters: 16, kernel_size: 3, padding: same, activation: relu}
    - conv2d: {name: c2, filters: 16, kernel_size: 3, padding: same, activation: relu}
    - global_average_pooling2d
    - dense: {name: fc, units: 5, activation: softmax}
)" + train_section("batch_size: 48, epochs: 100000, optimizer: {name: sgd, learning_rate: 1e-4}"));
}

TEST_CASE("inspect --flight shows what each rank did when one was killed") {
  const Folder folder;
  const std::string config = write_config(folder), directory = folder / "killed";
  Command run(folder, {"run", config, "--ranks", "3", "--device", "cpu", "--run-dir", directory, "--progress", "none"});
  REQUIRE(comes_true([&] { return events(directory, "step").size() > 20; }));
  const pid_t killed = run.ranks().at(1);
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
  // The other ranks have entered the collective that rank 1 did not reach, unless it was killed within one.
  if (!json.at("divergence").is_null()) {
    CHECK(json.at("divergence").at("missing") == std::vector<int>{1});
    CHECK(json.at("divergence").at("entered") == std::vector<int>{0, 2});
    CHECK(contains(json.at("divergence").at("call").get<std::string>(), "(c1 ... fc)"));
  }
  const Finished table = trainctl(folder, {"inspect", directory, "--flight"});
  CHECK(contains(table.out, "unchanged for"));
  CHECK(contains(table.out, std::to_string(killed)));
}

TEST_CASE("inspect --flight refuses a run without records, and another checkpoint beside it") {
  const Folder folder;
  std::filesystem::create_directories(folder / "empty/flight");
  CHECK(trainctl(folder, {"inspect", folder / "absent", "--flight"}).code == 3);
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
    for (int pulse = 0; pulse < 10; ++pulse) {  // it runs a fifth of the time
      kill(slow, SIGSTOP);
      usleep(40'000);
      kill(slow, SIGCONT);
      usleep(10'000);
    }
    return contains(run.errors(), "rank 1 is a straggler: the other ranks wait");
  });
  INFO(tail(run.errors()));
  CHECK(is_told);
  CHECK(count(run.errors(), "is a straggler") == 1);
  run.send(SIGINT);
  CHECK(run.wait() == 75);
}

}  // namespace
}  // namespace trainctl::test::flight_runs_test
