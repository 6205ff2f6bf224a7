// Tests runs whose checkpoints follow from the measured cost of a save.
#include "test/catch.h"
#include "test/support/command.h"
#include "test/support/configs.h"

namespace trainctl::test::checkpoint_interval_test {
namespace {

std::vector<std::int64_t> saved_steps(const std::string& directory) {
  std::vector<std::int64_t> steps;
  for (const Json& event : events(directory, "checkpoint")) steps.push_back(event.at("step"));
  return steps;
}

}  // namespace

TEST_CASE("with checkpoint.every: auto a short run is saved after ten steps and at its end, and tells the interval") {
  const Folder folder;
  const std::string config = folder.write(
      "auto.yaml",
      "data: {dataset: synthetic, samples: 400, shape: [8], classes: 4}\n"
      "model: {layers: [{dense: {units: 16, activation: relu}}, {dense: 4}]}\n"
      "checkpoint: {every: auto}\n"
      "cluster: {mean_time_between_failures: 1 s}\n" +  // saves at every step, but for the shortest interval
          train_section("batch_size: 20, max_steps: 150, optimizer: {name: sgd}"));
  for (const char* background : {"true", "false"}) {
    const std::string directory = folder / background;
    const Finished run = trainctl(folder, {"run", config, "--ranks", "2", "--run-dir", directory, "--set",
                                           std::string("checkpoint.background=") + background});
    INFO(tail(run.errors));
    REQUIRE(run.code == 0);
    CHECK(saved_steps(directory) == std::vector<std::int64_t>{10, 150});
    CHECK(count(run.errors, "checkpoint.every: auto: a checkpoint every ") >= 1);
    CHECK(contains(run.errors, "one failure is expected in 1 s"));
  }
}

}  // namespace trainctl::test::checkpoint_interval_test
