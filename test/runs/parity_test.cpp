// Tests that n ranks train as one rank does: the same global batches, the same losses.
#include <cmath>

#include "core/base/format.h"
#include "test/catch.h"
#include "test/support/command.h"
#include "test/support/configs.h"

namespace trainctl::test::parity_test {
namespace {

std::vector<double> losses(const std::string& run_directory) {
  std::vector<double> found;
  for (const Json& step : events(run_directory, "step")) found.push_back(step.at("loss"));
  return found;
}

std::string train_on(const Folder& folder, const std::string& config, int ranks, const std::string& set = "version=1") {
  const std::string directory = folder / format("{}-ranks-{}", std::filesystem::path(config).stem().string(), ranks);
  const Finished run = trainctl(folder, {"run", config, "--ranks", std::to_string(ranks), "--run-dir", directory,
                                         "--progress", "none", "--set", set});
  INFO(tail(run.errors));
  REQUIRE(run.code == 0);
  return directory;
}

void compare(const std::string& one, const std::string& many) {
  const std::vector<double> expected = losses(one), found = losses(many);
  REQUIRE(expected.size() == 30);
  REQUIRE(found.size() == 30);
  for (std::size_t step = 0; step < expected.size(); ++step) {
    CAPTURE(many, step);
    CHECK(found[step] == Approx(expected[step]).epsilon(1e-4));
  }
  CHECK(found.front() != found.back());
  const std::vector<Json> epochs = events(one, "epoch"), others = events(many, "epoch");
  REQUIRE(epochs.size() >= 5);
  REQUIRE(others.size() == epochs.size());
  for (std::size_t epoch = 0; epoch < epochs.size(); ++epoch) {
    CAPTURE(many, epoch);
    for (const char* part : {"train", "validation"}) {
      CHECK(others[epoch].at(part).at("loss").get<double>() ==
            Approx(epochs[epoch].at(part).at("loss").get<double>()).epsilon(1e-4));
      // One sample may fall on the other side of a tie.
      CHECK(std::abs(others[epoch].at(part).at("accuracy").get<double>() -
                     epochs[epoch].at(part).at("accuracy").get<double>()) < 1.01 / 37);
    }
  }
}

TEST_CASE("an MLP with dropout learns the same on 1, 2, 3 and 4 ranks") {
  const Folder folder;
  const std::string config =
      folder.write("mlp.yaml", uneven_data + mlp_model +
                                   train_section("batch_size: 20, epochs: 5, optimizer: {name: sgd, "
                                                 "learning_rate: 0.1, momentum: 0.9}, clip_norm: 2"));
  const std::string one = train_on(folder, config, 1);
  for (int ranks : {2, 3, 4}) compare(one, train_on(folder, config, ranks));
}

TEST_CASE("a CNN with skips and dropout learns the same on 1, 2, 3 and 4 ranks, and with micro-batches") {
  const Folder folder;
  const std::string config =
      folder.write("skips.yaml", uneven_data + skip_model +
                                     train_section("batch_size: 20, epochs: 5, optimizer: {name: adamw, "
                                                   "learning_rate: 3e-3, weight_decay: 0.01}"));
  const std::string one = train_on(folder, config, 1);
  for (int ranks : {2, 3, 4}) compare(one, train_on(folder, config, ranks));
  compare(one, train_on(folder, config, 5, "train.gradient_accumulation=2"));
}

TEST_CASE("with batch norm, N ranks learn what one rank learns on the same micro-batches") {
  const Folder folder;
  std::string data = uneven_data;
  data.replace(data.find("103"), 3, "120");  // full batches only, so that micro-batches divide every share
  const std::string config =
      folder.write("norms.yaml", data + batch_norm_model +
                                     train_section("batch_size: 24, epochs: 6, optimizer: {name: sgd, "
                                                   "learning_rate: 0.05, momentum: 0.9}"));
  for (int ranks : {2, 3, 4}) {
    const Folder alone;
    compare(train_on(alone, config, 1, format("train.gradient_accumulation={}", ranks)),
            train_on(folder, config, ranks));
  }
}

TEST_CASE("with synchronized batch norm, N ranks learn what one rank learns on whole batches") {
  const Folder folder;
  std::string model = batch_norm_model;
  model.replace(model.find("momentum: 0.9"), 13, "momentum: 0.9, synchronized: true");
  const std::string config =
      folder.write("synchronized.yaml", uneven_data + model +
                                            train_section("batch_size: 20, epochs: 5, optimizer: {name: sgd, "
                                                          "learning_rate: 0.05, momentum: 0.9}") +
                                            "strategy: {verify_every: 1 steps}\n");
  const std::string one = train_on(folder, config, 1);
  for (int ranks : {2, 3, 4}) compare(one, train_on(folder, config, ranks));
  const Finished check = trainctl(folder, {"check", config, "--ranks", "2"});
  CHECK_FALSE(contains(check.out, "batch normalization computes its statistics over"));
}

TEST_CASE("gradients in bfloat16 train replicas that hold the same bits") {
  const Folder folder;
  const std::string config =
      folder.write("rounded.yaml", uneven_data + skip_model +
                                       train_section("batch_size: 20, epochs: 5, optimizer: {name: sgd, "
                                                     "learning_rate: 0.05, momentum: 0.9}") +
                                       "strategy: {gradient_dtype: bfloat16, verify_every: 1 steps}\n");
  const std::vector<double> expected = losses(train_on(folder, config, 1));
  for (int ranks : {2, 4}) {
    for (const char* overlap : {"false", "true"}) {
      const Folder other;
      const std::vector<double> found = losses(train_on(other, config, ranks, format("strategy.overlap={}", overlap)));
      REQUIRE(found.size() == expected.size());
      CHECK(found[0] == Approx(expected[0]).epsilon(1e-5));
      for (std::size_t step = 0; step < found.size(); ++step) {
        CHECK(found[step] == Approx(expected[step]).epsilon(0.02));
      }
    }
  }
}

}  // namespace
}  // namespace trainctl::test::parity_test
