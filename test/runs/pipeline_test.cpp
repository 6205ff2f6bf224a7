// Tests pipelines in whole runs: the losses of one rank, checkpoints for any mesh, stops, evaluation and the output of
// check.
#include <signal.h>

#include <cmath>
#include <filesystem>

#include "core/base/format.h"
#include "test/catch.h"
#include "test/support/command.h"
#include "test/support/configs.h"

namespace trainctl::test::pipeline_test {
namespace {

// Trains into a folder of its own; `settings` are arguments of --set.
std::string train_on(const Folder& folder, const std::string& config, int ranks,
                     const std::vector<std::string>& settings, const std::vector<std::string>& further = {}) {
  static int number = 0;
  const std::string directory = folder / format("run-{}", ++number);
  std::vector<std::string> command = {"run",       config,    "--ranks",    std::to_string(ranks),
                                      "--run-dir", directory, "--progress", "none"};
  for (const std::string& setting : settings) command.insert(command.end(), {"--set", setting});
  command.insert(command.end(), further.begin(), further.end());
  const Finished run = trainctl(folder, command);
  INFO(tail(run.errors));
  REQUIRE(run.code == 0);
  return directory;
}

void compare(const std::string& one, const std::string& stages) {
  const auto expected = step_losses(one), found = step_losses(stages);
  REQUIRE(expected.size() == 30);
  REQUIRE(found.size() == 30);
  for (const auto& [step, loss] : expected) {
    CAPTURE(stages, step);
    CHECK(found.at(step) == Approx(loss).epsilon(1e-4));
  }
  CHECK(found.at(1) != found.at(30));
  const Json last = events(one, "epoch").back(), other = events(stages, "epoch").back();
  for (const char* part : {"train", "validation"}) {
    CHECK(other.at(part).at("loss").get<double>() == Approx(last.at(part).at("loss").get<double>()).epsilon(1e-4));
  }
}

std::string skips_on(const Folder& folder, const std::string& further = "") {
  return folder.write("skips.yaml", uneven_data + skip_model +
                                        train_section("batch_size: 20, epochs: 5, optimizer: {name: adamw, "
                                                      "learning_rate: 3e-3, weight_decay: 0.01}") +
                                        further);
}

// One tensor is sent between blocks, but two from within a block, whose addition is fused into the op before it.
TEST_CASE("balanced stages of a residual network are cut between its blocks") {
  const Folder folder;
  const std::string config = folder.write("resnet20.yaml", R"(
data: {dataset: synthetic, samples: 256, shape: [32, 32, 3], classes: 10}
model: {preset: resnet20, with: {classes: 10}}
)" + train_section("batch_size: 128, epochs: 1, optimizer: sgd"));
  const Finished check =
      trainctl(folder, {"check", config, "--ranks", "2", "--device", "cpu", "--json", "--set", "strategy.pipeline=2"});
  INFO(tail(check.errors));
  REQUIRE(check.code == 0);
  CHECK(Json::parse(check.out).at("mesh").at(0).at("layers").back() == "stage2_first");
}

TEST_CASE("a CNN with skips and dropout learns in stages what it learns on one rank") {
  const Folder folder;
  const std::string config = skips_on(folder);
  const std::string one = train_on(folder, config, 1, {});
  compare(one, train_on(folder, config, 2, {"strategy.pipeline=2", "strategy.micro_batches=5"}));
  compare(one, train_on(folder, config, 4, {"strategy.pipeline=4", "strategy.schedule=gpipe"}));
  compare(one, train_on(folder, config, 4, {"strategy.pipeline=2", "strategy.micro_batches=5"}));
  // The first stage sends activations to the last one, too.
  compare(one,
          train_on(folder, config, 3,
                   {"strategy.place={0: [first, residual, pooled], 1: [wide], 2: [concatenate, global*, dense]}"}));
}

TEST_CASE("layers of two stages that share an input are split on each") {
  const Folder folder;
  const std::string config = folder.write("projection.yaml", uneven_data + R"(
model:
  layers:
    - conv2d: {name: first, filters: 15, kernel_size: 3, padding: same, activation: relu}  # no two ranks share it
    - residual:
        name: block
        layers:
          - conv2d: {name: inner, filters: 32, kernel_size: 3, padding: same, activation: relu}
          - conv2d: {filters: 32, kernel_size: 3, padding: same}
        shortcut: [{conv2d: {name: projection, filters: 32, kernel_size: 3, padding: same}}]
        activation: relu
    - flatten
    - dense: {units: 5}
)" + train_section("batch_size: 20, epochs: 5, optimizer: {name: sgd, learning_rate: 0.02, momentum: 0.9}"));
  const std::vector<std::string> stages{"strategy.place={0: [first, block/inner], 1: [block, flatten, dense]}",
                                        "strategy.tensor=2"};
  const Finished check = trainctl(folder, {"check", config, "--ranks", "4", "--set", stages[0], "--set", stages[1]});
  for (const char* kernel : {"block/inner/kernel", "block/shortcut/projection/kernel"})
    CHECK(contains(check.out, kernel));
  compare(train_on(folder, config, 1, {}), train_on(folder, config, 4, stages));
}

TEST_CASE("a stage without trainable layers works with every kind of shard") {
  const Folder folder;
  const std::string config =
      folder.write("mlp.yaml", uneven_data + mlp_model +
                                   train_section("batch_size: 20, epochs: 5, clip_norm: 0.1, optimizer: {name: adam, "
                                                 "learning_rate: 3e-3}"));
  const std::string one = train_on(folder, config, 1, {});
  for (const char* shard : {"optimizer", "gradients", "parameters"}) {
    compare(one,
            train_on(folder, config, 4,
                     {"strategy.place={0: [flatten], 1: [dense*, dropout*]}", std::string("strategy.shard=") + shard}));
  }
}

TEST_CASE("with batch norm, stages learn what one rank learns on the same micro-batches") {
  const Folder folder;
  std::string data = uneven_data;
  data.replace(data.find("103"), 3, "120");  // full batches only, so that micro-batches divide every share
  const std::string config =
      folder.write("norms.yaml", data + batch_norm_model +
                                     train_section("batch_size: 24, epochs: 6, clip_norm: 1, optimizer: {name: sgd, "
                                                   "learning_rate: 0.05, momentum: 0.9}"));
  const std::string one = train_on(folder, config, 1, {"train.gradient_accumulation=6"});
  compare(one, train_on(folder, config, 2, {"strategy.pipeline=2", "strategy.micro_batches=6"}));
  compare(one, train_on(folder, config, 4, {"strategy.pipeline=2", "strategy.micro_batches=3"}));
}

TEST_CASE("a checkpoint of replicas of stages can be resumed and evaluated on any mesh") {
  const Folder folder;
  const std::string config = skips_on(folder, "checkpoint: {every: 8 steps, keep: 9}\n");
  const std::string whole = train_on(folder, config, 4, {"strategy.pipeline=2"});
  const auto expected = step_losses(whole);
  struct Mesh {
    int ranks;
    std::string stages;
  };
  for (const Mesh& mesh : {Mesh{1, "1"}, Mesh{3, "1"}, Mesh{4, "1"}, Mesh{4, "4"}}) {
    const std::string directory = train_on(folder, config, mesh.ranks, {"strategy.pipeline=" + mesh.stages},
                                           {"--resume", whole + "/checkpoints/step-00000016"});
    const auto found = step_losses(directory);
    REQUIRE(found.size() == 14);
    for (const auto& [step, loss] : found) {
      CAPTURE(mesh.ranks, mesh.stages, step);
      CHECK(loss == Approx(expected.at(step)).epsilon(1e-4));
    }
  }
  const auto evaluated = [&](const std::string& ranks) {
    const Finished eval =
        trainctl(folder, {"eval", config, "--run", whole, "--ranks", ranks, "--json", "--set", "strategy.pipeline=2"});
    INFO(tail(eval.errors));
    REQUIRE(eval.code == 0);
    return Json::parse(eval.out);
  };
  const Json one = evaluated("1");
  for (const char* ranks : {"2", "4"}) {
    CHECK(evaluated(ranks).at("loss").get<double>() == Approx(one.at("loss").get<double>()).epsilon(1e-5));
    CHECK(evaluated(ranks).at("accuracy") == one.at("accuracy"));
  }
}

TEST_CASE("stages stop together, and after a resume end with the weights of an uninterrupted run") {
  const Folder folder;
  const std::string config = folder.write("stop.yaml", R"(
data: {dataset: synthetic, samples: 1600, shape: [16, 16, 8], classes: 5}
log: {every: 1 steps}
strategy: {pipeline: 2}
)" + skip_model + train_section("batch_size: 32, epochs: 3, optimizer: {name: adam, learning_rate: 2e-3}"));
  const std::string whole = train_on(folder, config, 2, {});
  const std::string directory = folder / "runs/stop";
  Command run(folder, {"run", config, "--ranks", "2"});
  REQUIRE(comes_true([&] { return events(directory, "step").size() > 10; }));
  run.send(SIGINT);
  REQUIRE(run.wait() == 75);
  CHECK(run.left_no_process());
  CHECK(trainctl(folder, {"inspect", directory + "/checkpoints/last"}).code == 0);
  const Finished rest = trainctl(folder, {"run", config, "--ranks", "2"});
  INFO(tail(rest.errors));
  REQUIRE(rest.code == 0);
  CHECK(events(directory, "end").back().at("weights_sha256") == events(whole, "end").back().at("weights_sha256"));
}

TEST_CASE("a stage that diverges ends the run on all ranks, and the first tensor that is not finite is named") {
  const Folder folder;
  const std::string config =
      folder.write("diverges.yaml", uneven_data + skip_model +
                                        train_section("batch_size: 20, epochs: 9, optimizer: {name: sgd, "
                                                      "learning_rate: 1e9}"));
  const Finished run = trainctl(folder, {"run", config, "--ranks", "2", "--set", "strategy.pipeline=2"});
  CHECK(run.code == 4);
  CHECK(contains(run.errors, "the first tensor that is not finite is"));
  CHECK_FALSE(contains(run.errors, "written by receive"));
}

TEST_CASE("stages that share weights save them once, and any mesh can resume from them") {
  const Folder folder;
  const std::string config = folder.write(
      "shared.yaml", uneven_data + shared_model +
                         train_section("batch_size: 20, epochs: 5, optimizer: {name: adamw, learning_rate: "
                                       "3e-3, weight_decay: 0.01}") +
                         "checkpoint: {every: 8 steps, keep: 9}\n");
  const std::string whole = train_on(folder, config, 2, {"strategy.pipeline=2"});
  compare(train_on(folder, config, 1, {}), whole);
  const auto expected = step_losses(whole);
  const std::vector<std::pair<int, std::vector<std::string>>> meshes = {
      {1, {}},
      {4, {"strategy.pipeline=4", "strategy.schedule=gpipe"}},
      {4, {"strategy.pipeline=2", "strategy.shard=parameters"}},
      {4, {"strategy.pipeline=2", "strategy.tensor=2"}}};
  for (const auto& [ranks, settings] : meshes) {
    const std::string directory =
        train_on(folder, config, ranks, settings, {"--resume", whole + "/checkpoints/step-00000016"});
    const auto found = step_losses(directory);
    REQUIRE(found.size() == 14);
    for (const auto& [step, loss] : found) {
      CAPTURE(ranks, settings, step);
      CHECK(loss == Approx(expected.at(step)).epsilon(1e-4));
    }
  }
  const std::int64_t parameters = 3 * 9 * 12 + 12 + 12 * 9 * 12 + 12 + 12 * 12 + 12 + 12 * 5 + 5;
  CHECK(events(whole, "start").back().at("parameters") == parameters);
  const Json json =
      Json::parse(trainctl(folder, {"check", config, "--ranks", "2", "--json", "--set", "strategy.pipeline=2"}).out);
  CHECK(json.at("parameters") == parameters);
  const Json& mesh = json.at("mesh");
  CHECK(mesh.at(0).at("parameters").get<int>() + mesh.at(1).at("parameters").get<int>() > parameters);
}

TEST_CASE("check refuses shared weights that stages cannot keep equal") {
  const Folder folder;
  const std::string config = folder.write("shared.yaml", uneven_data + R"(
model:
  layers:
    - conv2d: {name: c, filters: 3, kernel_size: 3, padding: same}
    - batch_normalization: {name: n}
    - conv2d: {name: c, filters: 3, kernel_size: 3, padding: same}
    - batch_normalization: {name: n}
    - flatten
    - dense: 5
)" + train_section("batch_size: 20, epochs: 1, optimizer: sgd"));
  const auto refuses = [&](const std::string& place, const std::string& sync_every, const std::string& message) {
    const Finished check = trainctl(folder, {"check", config, "--ranks", "4", "--set", "strategy.place=" + place,
                                             "--set", "strategy.sync_every=" + sync_every});
    INFO(check.errors);
    CHECK(check.code == 2);
    CHECK(contains(check.errors, message));
    CHECK(contains(check.errors, "shared.yaml:"));
  };
  refuses("{0: [c, n], 1: ['c@2', 'n@2', flatten, dense]}", "1",
          "layer 'n@2' updates 'n/moving_mean' in stage 1, and 'n' in stage 0: put all uses");
  refuses("{0: [c, n], 1: [flatten, dense]}", "1", "layer 'c@2' is in no stage of strategy.place");
  refuses("{0: [c], 1: [n, 'c@2', 'n@2', flatten, dense]}", "2",
          "'c' and 'c@2', which share 'c/kernel', are in stages 0 and 1");
  const Finished check = trainctl(folder, {"check", config, "--ranks", "5", "--set", "strategy.pipeline=5"});
  CHECK(contains(check.errors,
                 "cannot be cut inside a block or between the uses of a batch normalization: use at most 4 "
                 "stages"));
}

TEST_CASE("check shows the stages of a pipeline, and refuses invalid settings") {
  const Folder folder;
  const std::string config = skips_on(folder, "strategy:\n  pipeline: 2\n");
  const Finished shown = trainctl(folder, {"check", config, "--ranks", "4"});
  INFO(tail(shown.errors));
  REQUIRE(shown.code == 0);
  CHECK(contains(shown.out, "2 replicas of 2 stages, 10 micro-batches a step"));
  CHECK(contains(shown.out, "0 2"));  // the ranks of stage 0
  const Json json = Json::parse(trainctl(folder, {"check", config, "--ranks", "4", "--json"}).out);
  const Json& mesh = json.at("mesh");
  REQUIRE(mesh.size() == 2);
  CHECK(mesh.at(0).at("layers").at(0) == "first");
  CHECK(mesh.at(0).at("ranks") == Json({0, 2}));
  CHECK(mesh.at(0).at("parameters").get<int>() + mesh.at(1).at("parameters").get<int>() == json.at("parameters"));
  CHECK(mesh.at(0).at("memory_bytes").get<int>() > 0);

  struct Refused {
    std::string ranks;
    std::vector<std::string> settings;
    std::string message;
  };
  const Refused refused[] = {
      {"3", {}, "3 ranks are not a multiple of the 2 stages of a pipeline; start 2 or 4 ranks"},
      {"1", {}, "1 ranks are not a multiple of the 2 stages of a pipeline; start 2 ranks"},
      {"2", {"strategy.micro_batches=3"}, "strategy.micro_batches: 3 does not divide the 20 samples"},
      {"2", {"strategy.micro_batches=4", "train.gradient_accumulation=2"}, "both divide the batch"},
      {"11", {"strategy.pipeline=11"}, "too few for 11 stages: use at most 10"},
      {"1", {"strategy.pipeline=1", "strategy.micro_batches=4"}, "but there is no pipeline"},
  };
  for (const Refused& of : refused) {
    std::vector<std::string> command = {"check", config, "--ranks", of.ranks};
    for (const std::string& setting : of.settings) command.insert(command.end(), {"--set", setting});
    const Finished check = trainctl(folder, command);
    CAPTURE(of.message, check.errors);
    CHECK(check.code == 2);
    CHECK(contains(check.errors, of.message));
    if (of.settings.empty()) CHECK(contains(check.errors, "skips.yaml:"));
  }
}

}  // namespace
}  // namespace trainctl::test::pipeline_test
