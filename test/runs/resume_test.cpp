// Tests that a stopped and resumed run ends like an uninterrupted one.
#include <signal.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <set>

#include "core/base/format.h"
#include "test/catch.h"
#include "test/support/command.h"
#include "test/support/configs.h"

namespace trainctl::test::resume_test {
namespace {

namespace fs = std::filesystem;

// 50 steps an epoch, each long enough to be interrupted.
const std::string long_run = R"(
data: {dataset: synthetic, samples: 1590, shape: [16, 16, 8], classes: 5, validation: {samples: 60},
       augment: [{random_flip: horizontal}]}
model:
  layers:
    - conv2d: {filters: 24, kernel_size: 3, padding: same, use_bias: false}
    - batch_normalization
    - activation: relu
    - conv2d: {filters: 24, kernel_size: 3, padding: same, activation: relu}
    - global_average_pooling2d
    - dropout: 0.2
    - dense: {units: 5}
log: {every: 1 steps}
)" + train_section("batch_size: 32, epochs: 4, optimizer: {name: adam, learning_rate: 2e-3}, schedule: {name: cosine, "
                   "warmup: 10 steps}");

std::string end_hash(const std::string& run_directory) {
  const std::vector<Json> ends = events(run_directory, "end");
  REQUIRE_FALSE(ends.empty());
  CHECK(ends.back().at("status") == "completed");
  return ends.back().at("weights_sha256");
}

// Interrupts a run with a signal at `step` or soon after, and returns the step at which it stopped.
std::int64_t interrupt(const Folder& folder, const std::vector<std::string>& arguments, const std::string& directory,
                       int step, int signal) {
  Command run(folder, arguments);
  REQUIRE(comes_true([&] {
    const std::vector<Json> steps = events(directory, "step");
    return !steps.empty() && steps.back().at("step") >= step;
  }));
  run.send(signal);
  const int code = run.wait();
  INFO(tail(run.errors()));
  REQUIRE(code == 75);
  CHECK(run.left_no_process());
  const bool quiet = arguments.back() == "--quiet";
  CHECK(count(run.errors(), "stopping after this step") == (quiet && signal == SIGINT ? 0 : 1));
  CHECK_FALSE(contains(run.errors(), "mpirun"));
  const Json end = events(directory, "end").back();
  CHECK(end.at("status") == "stopped");
  CHECK(fs::exists(format("{}/checkpoints/step-{:08}", directory, end.at("step").get<std::int64_t>())));
  return end.at("step");
}

void compare_epochs(const std::string& whole, const std::string& interrupted) {
  const std::vector<Json> expected = events(whole, "epoch"), found = events(interrupted, "epoch");
  REQUIRE(found.size() == expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    CHECK(found[i].at("epoch") == expected[i].at("epoch"));
    CHECK(found[i].at("step") == expected[i].at("step"));
    CHECK(found[i].at("train") == expected[i].at("train"));
    CHECK(found[i].at("validation") == expected[i].at("validation"));
  }
}

TEST_CASE("a run that was stopped twice in the middle of epochs ends with the bits of an uninterrupted one") {
  const Folder folder;
  const std::string config = folder.write("long.yaml", long_run);
  const std::string whole = folder / "whole";
  REQUIRE(trainctl(folder, {"run", config, "--ranks", "2", "--run-dir", whole}).code == 0);

  const std::string directory = folder / "runs/long";
  const std::vector<std::string> command = {"run", config, "--ranks", "2"};
  // The message after Ctrl-C is no warning: --quiet hides it.
  const std::int64_t first = interrupt(folder, {"run", config, "--ranks", "2", "--quiet"}, directory, 12, SIGINT);
  const std::int64_t second = interrupt(folder, command, directory, 70, SIGTERM);
  CHECK(second > first);
  CHECK(trainctl(folder, {"inspect", directory + "/checkpoints/last"}).code == 0);
  const Finished rest = trainctl(folder, command);
  INFO(tail(rest.errors));
  REQUIRE(rest.code == 0);
  CHECK(end_hash(directory) == end_hash(whole));
  compare_epochs(whole, directory);
  const std::vector<Json> starts = events(directory, "start");
  REQUIRE(starts.size() == 3);
  CHECK(starts[0].at("resumed_from").is_null());
  CHECK(contains(starts[2].at("resumed_from"), format("step-{:08}", second)));
  std::multiset<std::int64_t> steps;
  for (const Json& step : events(directory, "step")) steps.insert(step.at("step").get<std::int64_t>());
  CHECK(steps.size() == 200);  // each step once
  CHECK(std::set(steps.begin(), steps.end()).size() == 200);
  CHECK_FALSE(fs::exists(folder / "runs/long-2"));
}

TEST_CASE("a run is resumed at the exact step on other numbers of ranks") {
  const Folder folder;
  const std::string config = folder.write(
      "others.yaml", uneven_data + skip_model +
                         train_section("batch_size: 20, epochs: 5, optimizer: {name: adam, learning_rate: 3e-3}") +
                         "checkpoint: {every: 8 steps, keep: 9}\n");
  const std::string whole = folder / "whole";
  REQUIRE(trainctl(folder, {"run", config, "--ranks", "2", "--run-dir", whole}).code == 0);
  for (const char* ranks : {"1", "3", "4"}) {
    const std::string directory = folder / (std::string("part-") + ranks);
    const Finished run = trainctl(folder, {"run", config, "--ranks", ranks, "--run-dir", directory, "--resume",
                                           whole + "/checkpoints/step-00000016"});
    INFO(tail(run.errors));
    REQUIRE(run.code == 0);
    const auto expected = step_losses(whole), found = step_losses(directory);
    REQUIRE(found.size() == 14);
    for (const auto& [step, loss] : found) {
      CAPTURE(ranks, step);
      CHECK(step > 16);
      CHECK(loss == Approx(expected.at(step)).epsilon(1e-4));
    }
    // The epoch that another run has begun counts each of its samples once.
    const Json expected_epoch = events(whole, "epoch").at(2), epoch = events(directory, "epoch").at(0);
    CHECK(epoch.at("epoch") == 3);
    CHECK(epoch.at("train").at("loss").get<double>() ==
          Approx(expected_epoch.at("train").at("loss").get<double>()).epsilon(1e-5));
    const double right = epoch.at("train").at("accuracy").get<double>() * 103;
    CHECK(right == Approx(std::round(right)).epsilon(1e-9));
  }
}

TEST_CASE("batch_size_per_rank is resolved once, and kept on a resume with other ranks") {
  const Folder folder;
  const std::string config =
      folder.write("share.yaml",
                   uneven_data + mlp_model + "checkpoint: {every: 8 steps, keep: 20}\n" +
                       train_section("batch_size_per_rank: 10, epochs: 5, optimizer: {name: sgd, learning_rate: 0.1}"));
  const std::string whole = folder / "whole", directory = folder / "runs/share";
  REQUIRE(trainctl(folder, {"run", config, "--ranks", "2", "--run-dir", whole}).code == 0);
  REQUIRE(events(whole, "start").at(0).at("steps_per_epoch") == 6);
  CHECK(contains(read_file(whole + "/config.yaml"), "resolved:"));
  // As if it had been interrupted after step 16.
  fs::create_directories(directory);
  fs::copy(whole, directory, fs::copy_options::recursive | fs::copy_options::copy_symlinks);
  for (const char* later : {"step-00000018", "step-00000024", "step-00000030", "last", "best"}) {
    fs::remove_all(directory + "/checkpoints/" + later);
  }
  std::string lines;
  for (const Json& event : events(whole)) {
    if (event.at("event") == "step" && event.at("step") > 16) break;
    lines += event.dump() + "\n";
  }
  std::ofstream(directory + "/metrics.jsonl") << lines;

  const Finished run = trainctl(folder, {"run", config, "--ranks", "4"});
  INFO(tail(run.errors));
  REQUIRE(run.code == 0);
  CHECK(events(directory, "start").back().at("first_step") == 16);
  CHECK(events(directory, "start").back().at("steps_per_epoch") == 6);
  CHECK(events(directory, "end").back().at("step") == 30);
  const auto expected = step_losses(whole), found = step_losses(directory);
  REQUIRE(found.size() == 30);
  for (const auto& [step, loss] : found) CHECK(loss == Approx(expected.at(step)).epsilon(1e-4));
  CHECK(contains(run.errors, "the batch stays 20 samples"));
}

TEST_CASE("the resolved config can be run from another folder and leads to the same bits") {
  const Folder folder;
  const std::string config =
      folder.write("configs/again.yaml",
                   uneven_data + skip_model +
                       train_section("batch_size_per_rank: 10, epochs: 2, optimizer: {name: sgd, learning_rate: 0.1}"));
  REQUIRE(trainctl(folder, {"run", config, "--ranks", "2", "--run-dir", folder / "first"}).code == 0);
  fs::create_directories(folder / "elsewhere");
  const Finished again = trainctl(
      folder, {"run", "../first/config.yaml", "--ranks", "2", "--run-dir", "with a space/second"}, "elsewhere");
  INFO(tail(again.errors));
  REQUIRE(again.code == 0);
  CHECK(end_hash(folder / "elsewhere/with a space/second") == end_hash(folder / "first"));
}

TEST_CASE("a resume never starts a new run next to an unfinished one, and a finished run is not changed") {
  const Folder folder;
  const std::string config = folder.write(
      "twice.yaml",
      uneven_data + mlp_model + train_section("batch_size: 20, epochs: 2, optimizer: {name: sgd, learning_rate: 0.1}"));
  REQUIRE(trainctl(folder, {"run", config, "--ranks", "1"}).code == 0);
  REQUIRE(trainctl(folder, {"run", config, "--ranks", "1"}).code == 0);
  CHECK(end_hash(folder / "runs/twice") == end_hash(folder / "runs/twice-2"));
  const Finished finished = trainctl(folder, {"run", config, "--ranks", "2", "--run-dir", "runs/twice"});
  CHECK(finished.code == 0);
  CHECK(contains(finished.errors, "finished"));
  CHECK(events(folder / "runs/twice", "start").size() == 1);

  // Makes the run unfinished by removing its end event.
  std::string lines = read_file(folder / "runs/twice/metrics.jsonl");
  lines.erase(lines.rfind('\n', lines.size() - 2) + 1);
  std::ofstream(folder / "runs/twice/metrics.jsonl") << lines;
  REQUIRE(trainctl(folder, {"run", config, "--ranks", "1", "--resume", "never"}).code == 0);
  CHECK(end_hash(folder / "runs/twice-3") == end_hash(folder / "runs/twice-2"));
  CHECK(trainctl(folder, {"run", config, "--run-dir", "runs/twice", "--resume", "never"}).code == 2);
  const Finished other = trainctl(folder, {"run", config, "--set", "train.batch_size=21"});
  CHECK(other.code == 2);
  CHECK(contains(other.errors, "batch_size"));
  CHECK(contains(other.errors, "--resume never"));
}

TEST_CASE("a resume from weights only starts with a new optimizer state and logs it") {
  const Folder folder;
  const std::string config = folder.write(
      "weights.yaml", uneven_data + mlp_model +
                          train_section("batch_size: 20, epochs: 3, optimizer: {name: adam, learning_rate: 1e-3}") +
                          "checkpoint: {every: 7 steps, weights_only: true}\n");
  REQUIRE(trainctl(folder, {"run", config, "--ranks", "1", "--run-dir", "first"}).code == 0);
  CHECK_FALSE(fs::exists(folder / "first/checkpoints/step-00000014/state.safetensors"));
  const Finished rest = trainctl(
      folder, {"run", config, "--ranks", "2", "--run-dir", "rest", "--resume", "first/checkpoints/step-00000014"});
  INFO(tail(rest.errors));
  REQUIRE(rest.code == 0);
  CHECK(contains(rest.errors, "weights only"));
  CHECK(events(folder / "rest", "step").front().at("step") == 15);
}

}  // namespace
}  // namespace trainctl::test::resume_test
