// Tests more ranks than samples: a rank without a share takes part with zeros, in training, evaluation and a resume.
#include <filesystem>

#include "core/base/format.h"
#include "io/checkpoint/load.h"
#include "test/catch.h"
#include "test/support/command.h"
#include "test/support/configs.h"

namespace trainctl::test::few_samples_test {
namespace {

// Batches of 4 and a last one of 3: two of 6 ranks have no share of a full batch, and one of these two has a share of
// the last.
std::string config_of(const Folder& folder) {
  return folder.write("few.yaml", uneven_data + mlp_model +
                                      train_section("batch_size: 4, epochs: 1, optimizer: {name: sgd, "
                                                    "learning_rate: 0.05, momentum: 0.9}"));
}

std::vector<float> weights_of(const std::string& run_directory) {
  const LoadedCheckpoint loaded = load_checkpoint(run_directory + "/checkpoints/last");
  std::vector<float> weights;
  for (const NamedTensor& tensor : loaded.snapshot.weights) {
    weights.insert(weights.end(), tensor.view.as<float>(), tensor.view.as<float>() + tensor.view.count);
  }
  return weights;
}

void check_alike(const std::vector<float>& found, const std::vector<float>& expected) {
  REQUIRE(found.size() == expected.size());
  double difference = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    difference = std::max<double>(difference, std::abs(found[i] - expected[i]));
  }
  CHECK(difference < 1e-4);
}

void train(const Folder& folder, const std::vector<std::string>& more) {
  std::vector<std::string> arguments{"run", folder / "few.yaml", "--progress", "none"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  const Finished run = trainctl(folder, arguments);
  INFO(tail(run.errors));
  REQUIRE(run.code == 0);
}

TEST_CASE("six ranks share batches of four and learn what one rank learns") {
  const Folder folder;
  config_of(folder);
  train(folder, {"--ranks", "1", "--run-dir", folder / "one"});
  train(folder, {"--ranks", "6", "--run-dir", folder / "six"});
  check_alike(weights_of(folder / "six"), weights_of(folder / "one"));
  const Json one = events(folder / "one", "epoch").back(), six = events(folder / "six", "epoch").back();
  CHECK(six["validation"]["loss"].get<double>() == Approx(one["validation"]["loss"].get<double>()).epsilon(1e-4));

  SECTION("also with reductions during the backward pass") {
    train(folder, {"--ranks", "6", "--run-dir", folder / "overlapped", "--set", "strategy.overlap=true"});
    check_alike(weights_of(folder / "overlapped"), weights_of(folder / "one"));
  }
  SECTION("also if six ranks resume what one rank began") {
    train(folder, {"--ranks", "1", "--run-dir", folder / "begun", "--set", "train.max_steps=9"});
    train(folder, {"--ranks", "6", "--run-dir", folder / "ended", "--resume", folder / "begun/checkpoints/last"});
    check_alike(weights_of(folder / "ended"), weights_of(folder / "one"));
  }
}

TEST_CASE("an evaluation in batches of one sample is that of one rank") {
  const Folder folder;
  const std::string config = config_of(folder);
  train(folder, {"--ranks", "1", "--run-dir", folder / "one"});
  const auto evaluate = [&](const std::string& ranks) {
    const Finished run = trainctl(folder, {"eval", config, "--checkpoint", folder / "one/checkpoints/last", "--ranks",
                                           ranks, "--set", "train.batch_size=1", "--json"});
    INFO(tail(run.errors));
    REQUIRE(run.code == 0);
    return Json::parse(run.out);
  };
  const Json one = evaluate("1"), three = evaluate("3");
  CHECK(three["loss"].get<double>() == Approx(one["loss"].get<double>()).epsilon(1e-5));
  CHECK(three["accuracy"].get<double>() == Approx(one["accuracy"].get<double>()));
}

}  // namespace
}  // namespace trainctl::test::few_samples_test
