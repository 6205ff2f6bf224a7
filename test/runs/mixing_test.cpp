// Tests mixed samples in whole runs: classes for every loss that accepts them, and the same bits on any number of ranks
// and after a resume.
#include "core/base/format.h"
#include "test/catch.h"
#include "test/support/command.h"
#include "test/support/configs.h"

namespace trainctl::test::mixing_test {
namespace {

std::string mixed_data(const std::string& augment) {
  return format(R"(
data: {{dataset: synthetic, samples: 103, shape: [8, 8, 3], classes: 5, validation: {{samples: 37}},
       augment: [{}]}}
log: {{every: 1 steps}}
)",
                augment);
}

const std::string model = R"(
model:
  layers:
    - conv2d: {filters: 8, kernel_size: 3, padding: same, activation: relu}
    - flatten
    - dense: {units: 5, activation: softmax}
)";

Json end_of(const Folder& folder, const std::string& config, const std::string& name,
            const std::vector<std::string>& more) {
  std::vector<std::string> arguments{"run", config, "--run-dir", folder / name, "--progress", "none"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  const Finished run = trainctl(folder, arguments);
  INFO(tail(run.errors));
  REQUIRE(run.code == 0);
  return events(folder / name, "end").back();
}

TEST_CASE("a run on mixed samples learns the same bits on any number of ranks, and after a resume") {
  const Folder folder;
  const std::string config = folder.write(
      "mixed.yaml", mixed_data("{random_flip: horizontal}, {mixup: 0.4}, {cutmix: 1.0}") + model +
                        "strategy: {reproducible: {shards: 8}}\n" +
                        train_section("batch_size: 24, epochs: 2, optimizer: {name: adam, learning_rate: 3e-3}"));
  const Json whole = end_of(folder, config, "whole", {"--ranks", "1"});
  for (const char* ranks : {"2", "3"}) {
    const Json end = end_of(folder, config, ranks, {"--ranks", ranks});
    CHECK(end.at("weights_sha256") == whole.at("weights_sha256"));
    CHECK(end.at("train") == whole.at("train"));
    CHECK(end.at("validation") == whole.at("validation"));
  }
  end_of(folder, config, "pieces", {"--ranks", "2", "--set", "train.max_steps=3"});
  const Json end = end_of(folder, config, "pieces", {"--ranks", "3"});
  CHECK(end.at("weights_sha256") == whole.at("weights_sha256"));
  CHECK(end.at("train") == whole.at("train"));
}

TEST_CASE("class numbers of mixed samples lead to the same losses as probabilities") {
  const Folder folder;
  const auto losses = [&](const std::string& loss) {
    const std::string text = mixed_data("{mixup: 0.4}") + model +
                             format(
                                 "train: {{loss: {}, metrics: [accuracy], batch_size: 20, epochs: 2, "
                                 "optimizer: sgd}}\n",
                                 loss);
    const std::string name = format("loss-{}", std::hash<std::string>{}(loss));
    const Json end = end_of(folder, folder.write(name + ".yaml", text), name, {});
    return std::pair{step_losses(folder / name), end.at("validation").at("loss").get<double>()};
  };
  const auto sparse = losses("sparse_categorical_crossentropy");
  CHECK(sparse == losses("categorical_crossentropy"));
  CHECK(losses("{name: sparse_categorical_crossentropy, label_smoothing: 0.1}") ==
        losses("{name: categorical_crossentropy, label_smoothing: 0.1}"));
  CHECK(losses("sparse_categorical_focal_crossentropy") == losses("categorical_focal_crossentropy"));
}

}  // namespace
}  // namespace trainctl::test::mixing_test
