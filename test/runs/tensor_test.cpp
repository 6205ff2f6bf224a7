// Tests whole runs whose ranks split layers: they learn what one rank learns, and resume from each other's checkpoints.
#include <map>
#include <random>

#include "core/base/format.h"
#include "test/catch.h"
#include "test/support/command.h"
#include "test/support/configs.h"
#include "test/support/files.h"

namespace trainctl::test::tensor_test {
namespace {

struct Ranks {
  int ranks = 1, tensor = 1;
};

std::vector<std::string> command(const char* subcommand, const std::string& config, const Ranks& mesh) {
  return {
      subcommand, config, "--ranks", std::to_string(mesh.ranks), "--set", format("strategy.tensor={}", mesh.tensor)};
}

// Runs the config, from a checkpoint if one is given; returns the run directory.
std::string train_on(const Folder& folder, const std::string& config, const Ranks& mesh, const std::string& from = "") {
  static int number = 0;
  const std::string directory = folder / format("run-{}", ++number);
  std::vector<std::string> arguments = command("run", config, mesh);
  arguments.insert(arguments.end(), {"--run-dir", directory, "--progress", "none"});
  if (!from.empty()) arguments.insert(arguments.end(), {"--resume", from});
  const Finished run = trainctl(folder, arguments);
  INFO(tail(run.errors));
  REQUIRE(run.code == 0);
  return directory;
}

void compare_steps(const std::string& whole, const std::string& other, std::size_t steps) {
  const auto expected = step_losses(whole), found = step_losses(other);
  REQUIRE(found.size() == steps);
  for (const auto& [step, loss] : found) {
    CAPTURE(other, step);
    CHECK(loss == Approx(expected.at(step)).epsilon(1e-4));
  }
}

void compare_epochs(const std::string& one, const std::string& many) {
  const std::vector<Json> epochs = events(one, "epoch"), others = events(many, "epoch");
  REQUIRE(others.size() == epochs.size());
  for (std::size_t epoch = 0; epoch < epochs.size(); ++epoch) {
    CAPTURE(many, epoch);
    for (const char* part : {"train", "validation"}) {
      CHECK(others[epoch].at(part).at("loss").get<double>() ==
            Approx(epochs[epoch].at(part).at("loss").get<double>()).epsilon(1e-4));
    }
  }
}

const std::string mlp = uneven_data + mlp_model +
                        train_section(
                            "batch_size: 20, epochs: 5, optimizer: {name: sgd, learning_rate: 0.1, "
                            "momentum: 0.9}, clip_norm: 2") +
                        "checkpoint: {every: 8 steps, keep: 9}\n";

TEST_CASE("ranks that split layers learn and evaluate as one rank does") {
  const Folder folder;
  const std::string skips = folder.write(
      "skips.yaml", uneven_data + skip_model +
                        train_section("batch_size: 20, epochs: 5, optimizer: {name: adamw, learning_rate: 3e-3, "
                                      "weight_decay: 0.01}"));
  for (const std::string& config : {folder.write("mlp.yaml", mlp), skips}) {
    const std::string one = train_on(folder, config, {1, 1});
    for (const Ranks& mesh : {Ranks{2, 2}, Ranks{4, 4}, Ranks{4, 2}}) {
      const std::string many = train_on(folder, config, mesh);
      compare_steps(one, many, 30);
      compare_epochs(one, many);
      const Json start = events(many, "start").at(0);
      CHECK(start.at("mesh") == Json({mesh.ranks / mesh.tensor, 1, mesh.tensor}));
      CHECK(start.at("parameters") == events(one, "start").at(0).at("parameters"));
      CHECK(trainctl(folder, {"inspect", many + "/checkpoints/last"}).code == 0);
      std::vector<std::string> arguments = command("eval", config, mesh);
      arguments.insert(arguments.end(), {"--run", many, "--json"});
      const Finished evaluated = trainctl(folder, arguments);
      INFO(tail(evaluated.errors));
      REQUIRE(evaluated.code == 0);
      CHECK(Json::parse(evaluated.out)["loss"].get<double>() > 0);
    }
  }
}

TEST_CASE("check shows the mesh: which ranks hold which shard of which layers") {
  const Folder folder;
  const std::string config = folder.write("mlp.yaml", mlp);
  const std::vector<std::string> command = {
      "check", config, "--ranks", "8", "--set", "strategy.tensor=2", "--set", "strategy.pipeline=2"};
  const Finished check = trainctl(folder, command);
  INFO(tail(check.errors) << check.out);
  REQUIRE(check.code == 0);
  CHECK(contains(check.out, "2 replicas of 2 stages of 2 ranks that share layers"));
  // The first layer has 192 inputs and 48 units. Each rank holds 24 of the units.
  CHECK(contains(check.out, "[0:192, 0:24]"));
  CHECK(contains(check.out, "[0:192, 24:48]"));
  std::vector<std::string> as_json = command;
  as_json.push_back("--json");
  const Json mesh = Json::parse(trainctl(folder, as_json).out).at("mesh");
  REQUIRE(mesh.size() == 4);
  std::vector<int> ranks;
  for (const Json& part : mesh) {
    for (const Json& rank : part.at("ranks")) ranks.push_back(rank);
  }
  CHECK(ranks == std::vector<int>{0, 4, 1, 5, 2, 6, 3, 7});
  CHECK(mesh.at(0).at("parameters") == 192 * 24 + 24);
}

TEST_CASE("stages whose ranks split layers learn as one rank does, and one rank resumes from them") {
  const Folder folder;
  const std::string config = folder.write("mlp.yaml", mlp), directory = folder / "stages";
  const std::string one = train_on(folder, config, {1, 1});
  std::vector<std::string> arguments = command("run", config, {4, 2});
  arguments.insert(arguments.end(), {"--set", "strategy.pipeline=2", "--set", "strategy.micro_batches=2", "--run-dir",
                                     directory, "--progress", "none"});
  const Finished run = trainctl(folder, arguments);
  INFO(tail(run.errors));
  REQUIRE(run.code == 0);
  CHECK(events(directory, "start").at(0).at("mesh") == Json({1, 2, 2}));
  compare_steps(one, directory, 30);
  compare_epochs(one, directory);
  compare_steps(one, train_on(folder, config, {1, 1}, directory + "/checkpoints/step-00000016"), 14);
}

TEST_CASE("a checkpoint of ranks that split layers can be resumed on all meshes") {
  const Folder folder;
  const std::string config = folder.write("mlp.yaml", mlp);
  const std::string one = train_on(folder, config, {1, 1}), shared = train_on(folder, config, {4, 2});
  const std::string checkpoint = "/checkpoints/step-00000016";
  for (const Ranks& mesh : {Ranks{1, 1}, Ranks{3, 1}, Ranks{4, 1}, Ranks{4, 4}}) {
    compare_steps(one, train_on(folder, config, mesh, shared + checkpoint), 14);
  }
  for (const Ranks& mesh : {Ranks{2, 2}, Ranks{4, 2}}) {
    compare_steps(one, train_on(folder, config, mesh, one + checkpoint), 14);
  }
}

TEST_CASE("losses over whole rows and whole samples are those of one rank if layers are split") {
  const Folder folder;
  const std::string focal = folder.write(
      "focal.yaml", uneven_data + mlp_model +
                        "train: {batch_size: 20, epochs: 2, loss: {name: sparse_categorical_focal_crossentropy, "
                        "gamma: 1.5}, optimizer: {name: sgd, learning_rate: 0.1}}\n");
  compare_steps(train_on(folder, focal, {1, 1}), train_on(folder, focal, {2, 2}), 12);

  std::mt19937 random(5);
  constexpr std::int64_t samples = 60, pixels = samples * 8 * 8;
  std::vector<float> x(pixels);
  std::vector<std::int64_t> y(pixels);
  for (std::size_t i = 0; i < x.size(); ++i) {
    y[i] = static_cast<std::int64_t>(random() % 2);
    x[i] = static_cast<float>(y[i]) + static_cast<float>(random() % 100) / 60.0f;
  }
  folder.write("x.npy", npy("<f4", format("({}, 8, 8, 1)", samples), raw(x)));
  folder.write("y.npy", npy("<i8", format("({}, 8, 8)", samples), raw(y)));
  const std::string dice = folder.write("dice.yaml", R"(
data: {dataset: npy, x: x.npy, y: y.npy}
model:
  layers:
    - conv2d: {filters: 32, kernel_size: 3, padding: same, activation: relu}
    - conv2d: {filters: 32, kernel_size: 3, padding: same, activation: relu}
    - conv2d: {filters: 1, kernel_size: 1, activation: sigmoid}
train: {batch_size: 20, epochs: 4, loss: dice, metrics: [mean_iou], optimizer: {name: sgd, learning_rate: 0.1}}
log: {every: 1 steps}
)");
  compare_steps(train_on(folder, dice, {1, 1}), train_on(folder, dice, {2, 2}), 12);
}

TEST_CASE("networks and optimizers that cannot be split are refused before anything starts, with the line") {
  const Folder folder;
  const std::string config = folder.write("mlp.yaml", mlp + "strategy:\n  tensor: 2\n");
  const Finished odd = trainctl(folder, {"run", config, "--ranks", "3", "--run-dir", "odd"});
  CHECK(odd.code == 2);
  CHECK(contains(odd.errors, "mlp.yaml:"));
  CHECK(contains(odd.errors, "3 ranks are not a multiple of the 2 ranks that share each layer; start 2 or 4 ranks"));
  const Finished lamb =
      trainctl(folder, {"run", config, "--ranks", "2", "--run-dir", "lamb", "--set", "train.optimizer=lamb"});
  CHECK(lamb.code == 2);
  CHECK(contains(lamb.errors, "whole parameters"));
  const std::string small = folder.write(
      "small.yaml", uneven_data + "model: {layers: [flatten, {dense: {units: 5, activation: softmax}}]}\n" +
                        train_section("batch_size: 20, epochs: 1, optimizer: sgd") + "strategy:\n  tensor: 2\n");
  for (const char* subcommand : {"run", "check"}) {
    const Finished none = trainctl(folder, {subcommand, small, "--ranks", "2"});
    CAPTURE(subcommand, none.errors);
    CHECK(none.code == 2);
    CHECK(contains(none.errors, "no layer of this network can be split among 2 ranks"));
    CHECK(contains(none.errors, "small.yaml:"));
  }
}

}  // namespace
}  // namespace trainctl::test::tensor_test
