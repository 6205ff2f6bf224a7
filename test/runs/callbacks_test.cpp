// Tests early stopping and plateaus in whole runs: when they act, what they save, and that a resume changes nothing.
#include <algorithm>
#include <filesystem>

#include "test/catch.h"
#include "test/support/command.h"
#include "test/support/configs.h"

namespace trainctl::test::callbacks_test {
namespace {

// A run that learns fast and then overfits: the validation loss rises again.
std::string overfitting(const std::string& keys) {
  return uneven_data + R"(
model:
  layers:
    - flatten
    - dense: {units: 64, activation: relu}
    - dense: {units: 5, activation: softmax}
)" + train_section("batch_size: 20, epochs: 60, optimizer: {name: adam, learning_rate: 1e-2}, " + keys);
}

std::vector<double> validation_losses(const std::string& run_directory) {
  std::vector<double> losses;
  for (const Json& epoch : events(run_directory, "epoch")) losses.push_back(epoch.at("validation").at("loss"));
  return losses;
}

TEST_CASE("a resumed run without the checkpoint of its best epoch keeps its last weights, and says so") {
  const Folder folder;
  // Weights do not change at this rate: no epoch is better than the first one.
  const std::string config = folder.write(
      "missing.yaml", uneven_data + "model: {layers: [flatten, {dense: {units: 5}}]}\n" +
                          train_section("batch_size: 20, epochs: 2, optimizer: {name: sgd, learning_rate: 1e-30}, "
                                        "early_stopping: {patience: 50, restore_best: true}"));
  const std::string directory = folder / "run";
  REQUIRE(trainctl(folder, {"run", config, "--ranks", "2", "--run-dir", directory}).code == 0);
  REQUIRE(events(directory, "end").at(0).at("best").at("step") == 6);
  REQUIRE(std::filesystem::remove_all(directory + "/checkpoints/step-00000006") > 0);  // as if the disk had been full
  const Finished rest =
      trainctl(folder, {"run", config, "--ranks", "2", "--run-dir", directory, "--set", "train.epochs=4"});
  INFO(tail(rest.errors));
  CHECK(rest.code == 0);
  CHECK(contains(rest.errors,
                 "the weights stay those of the last step: the run's directory has no checkpoint of the "
                 "best result, of step 6"));
  CHECK(events(directory, "end").back().at("step") == 24);
}

TEST_CASE("early stopping ends a run with the weights of its best epoch") {
  const Folder folder;
  const std::string config =
      folder.write("early.yaml", overfitting("early_stopping: {patience: 3, restore_best: true}"));
  const std::string whole = folder / "whole";
  const Finished run = trainctl(folder, {"run", config, "--ranks", "2", "--run-dir", whole});
  INFO(tail(run.errors));
  REQUIRE(run.code == 0);
  CHECK(contains(run.errors, "early stopping: val_loss has not improved for 3 epochs"));
  const std::vector<double> losses = validation_losses(whole);
  REQUIRE(losses.size() < 60);
  const auto best = std::min_element(losses.begin(), losses.end());
  CHECK(losses.end() - best == 4);  // three epochs after the best one
  const Json end = events(whole, "end").at(0);
  CHECK(end.at("status") == "completed");
  CHECK(end.at("best").at("value") == *best);
  const auto inspected = [&](const std::string& name) {
    const Finished inspect = trainctl(folder, {"inspect", whole + "/checkpoints/" + name, "--json"});
    return Json::parse(inspect.out).at("checkpoints").at(0);
  };
  const Json kept_best = inspected("best"), kept_last = inspected("last");
  CHECK(kept_best.at("weights_sha256") == kept_last.at("weights_sha256"));
  CHECK(kept_best.at("step") < kept_last.at("step"));
  CHECK(end.at("weights_sha256") == kept_best.at("weights_sha256"));

  // A run that is resumed every two epochs ends at the same step. restore_best would change the weights of each piece.
  const std::string pieces = folder / "pieces";
  for (std::size_t epochs = 2; epochs < 60; epochs += 2) {
    const Finished piece = trainctl(
        folder, {"run", config, "--ranks", "2", "--run-dir", pieces, "--set", "train.epochs=" + std::to_string(epochs),
                 "--set", "train.early_stopping.restore_best=false"});
    REQUIRE(piece.code == 0);
    if (contains(piece.errors, "early stopping")) break;
  }
  CHECK(events(pieces, "end").back().at("step") == end.at("step"));
}

TEST_CASE("on a plateau the learning rate falls, also in a run that is resumed") {
  const Folder folder;
  const std::string config = folder.write(
      "plateau.yaml", overfitting("reduce_on_plateau: {patience: 2, factor: 0.5, min_learning_rate: 1e-3}"));
  const std::string whole = folder / "whole", pieces = folder / "pieces";
  REQUIRE(trainctl(folder, {"run", config, "--run-dir", whole, "--set", "train.epochs=16"}).code == 0);
  for (const char* epochs : {"train.epochs=5", "train.epochs=9", "train.epochs=16"}) {
    REQUIRE(trainctl(folder, {"run", config, "--run-dir", pieces, "--set", epochs}).code == 0);
  }
  const auto rates = [](const std::string& directory) {
    std::vector<double> rates;
    for (const Json& step : events(directory, "step")) rates.push_back(step.at("learning_rate"));
    return rates;
  };
  const std::vector<double> expected = rates(whole);
  CHECK(expected.front() == 1e-2);
  CHECK(expected.back() < 1e-2);
  CHECK(rates(pieces) == expected);
  CHECK(events(pieces, "end").back().at("weights_sha256") == events(whole, "end").back().at("weights_sha256"));
}

TEST_CASE("a metric that cannot be monitored is reported as one error, with its location") {
  const Folder folder;
  const std::string no_validation = R"(
data: {dataset: synthetic, samples: 40, shape: [4, 4, 1], classes: 3}
model: {layers: [flatten, dense: 3]}
train:
  loss: sparse_categorical_crossentropy
  optimizer: sgd
  batch_size: 10
  epochs: 2
  early_stopping: {patience: 2}
)";
  const Finished missing = trainctl(folder, {"check", folder.write("none.yaml", no_validation)});
  CHECK(missing.code == 2);
  CHECK(contains(missing.errors, "none.yaml:9:19: monitor 'val_loss' needs validation data"));
  const Finished unknown =
      trainctl(folder, {"check", folder.write("unknown.yaml", overfitting("reduce_on_plateau: {monitor: val_f1}"))});
  CHECK(unknown.code == 2);
  CHECK(contains(unknown.errors, "monitor 'val_f1' is not a result of this run"));
  const Finished two =
      trainctl(folder, {"check", folder.write("two.yaml", overfitting("early_stopping: {restore_best: true}") +
                                                              "checkpoint: {monitor: val_accuracy}\n")});
  CHECK(two.code == 2);
  CHECK(contains(two.errors, "early_stopping restores checkpoints/best, and watches val_loss"));
}

}  // namespace
}  // namespace trainctl::test::callbacks_test
