// Tests runs that start from the weights of a file. All meshes start from the same weights, a resume does not read the
// file again, and errors are reported before the run starts.
#include <filesystem>

#include "core/base/format.h"
#include "io/checkpoint/safetensors.h"
#include "test/catch.h"
#include "test/support/command.h"
#include "test/support/configs.h"

namespace trainctl::test::weights_test {
namespace {

namespace fs = std::filesystem;

const std::string golden = TRAINCTL_SOURCE_DIR "/test/golden/pretrained/";

// The network of test/golden/pretrained.py without its normalizations, which would change in training. A learning rate
// of 0 leaves the weights as they were loaded.
std::string config_of(const std::string& file, const std::string& further = ", skip: [features.3.*, head.1.*]") {
  return R"(
data: {dataset: synthetic, samples: 24, shape: [10, 8, 3], classes: 5}
model:
  layers:
    - conv2d: {name: c1, filters: 6, kernel_size: 3, padding: same, activation: relu}
    - depthwise_conv2d: {name: dw, kernel_size: 3, depth_multiplier: 2, use_bias: false}
    - prelu: {name: slope, shared_axes: [1, 2]}
    - max_pooling2d: {pool_size: 2}
    - conv2d: {name: c2, filters: 8, kernel_size: 1, groups: 2}
    - conv2d_transpose: {name: up, filters: 4, kernel_size: 2, strides: 2}
    - flatten
    - dense: {name: hidden, units: 7, activation: relu}
    - dense: {name: predictions, units: 5, activation: softmax}
  weights:
    file: )" +
         file + R"(
    names:
      torch: [^c1$ -> features.0, ^dw$ -> features.2, ^slope$ -> features.4, ^c2$ -> features.6, ^up$ -> features.7,
              ^hidden$ -> head.2, ^predictions$ -> head.4]
)" + (further.empty() ? "" : "    " + further.substr(2) + "\n") +
         train_section("batch_size: 8, epochs: 1, optimizer: {name: sgd, learning_rate: 0, momentum: 0}");
}

Json end_of(const std::string& run_directory) { return events(run_directory, "end").back(); }

TEST_CASE("a run starts from the weights of a file on every mesh") {
  const Folder folder;
  const std::string config = folder.write("small.yaml", config_of(golden + "small.safetensors"));
  const std::string expected =
      SafetensorsFile(golden + "values.safetensors").header().metadata.at("without_norms_sha256");
  const std::pair<int, std::vector<std::string>> meshes[] = {{1, {}},
                                                             {2, {}},
                                                             {2, {"strategy.pipeline=2"}},
                                                             {2, {"strategy.shard=parameters"}},
                                                             {2, {"strategy.reproducible={shards: 4}"}}};
  for (const auto& [ranks, settings] : meshes) {
    const std::string directory = folder / format("{}-{}", ranks, settings.empty() ? "data" : settings[0].substr(9, 5));
    std::vector<std::string> arguments{"run", config, "--ranks", std::to_string(ranks), "--run-dir", directory};
    for (const std::string& setting : settings) arguments.insert(arguments.end(), {"--set", setting});
    const Finished run = trainctl(folder, arguments);
    CAPTURE(ranks, settings, tail(run.errors));
    REQUIRE(run.code == 0);
    CHECK(end_of(directory).at("weights_sha256") == expected);
    CHECK(count(run.errors, "by torch's names: 12 of 12 tensors; skipped: features.3.") == 1);
  }
}

TEST_CASE("ranks that split layers start from the weights of another run") {
  const Folder folder;
  const std::string config = folder.write("wide.yaml", R"(
data: {dataset: synthetic, samples: 24, shape: [10, 8, 3], classes: 5}
model:
  layers:
    - flatten
    - dense: {units: 256, activation: relu}
    - dense: {units: 256, activation: relu}
    - dense: {units: 5}
)" + train_section("batch_size: 8, epochs: 1, optimizer: {name: sgd, learning_rate: 0, momentum: 0}"));
  const auto hash_of = [&](const std::string& name, const std::vector<std::string>& further) {
    std::vector<std::string> arguments{"run", config, "--run-dir", folder / name};
    arguments.insert(arguments.end(), further.begin(), further.end());
    const Finished run = trainctl(folder, arguments);
    CAPTURE(name, tail(run.errors));
    REQUIRE(run.code == 0);
    return end_of(folder / name).at("weights_sha256");
  };
  const Json first = hash_of("first", {"--ranks", "1"});
  CHECK(hash_of("other", {"--ranks", "1", "--set", "seed=2"}) != first);
  CHECK(hash_of("tensor", {"--ranks", "2", "--set", "seed=2", "--set", "strategy.tensor=2", "--set",
                           "model.weights=" + (folder / "first")}) == first);
}

TEST_CASE("a resumed run reads the checkpoint and not the file of weights") {
  const Folder folder;
  const std::string file = folder / "begin.safetensors";
  fs::copy_file(golden + "small.safetensors", file);
  const std::string config = folder.write("small.yaml", config_of("begin.safetensors"));
  const std::vector<std::string> run{"run", config, "--run-dir", folder / "run"};
  REQUIRE(trainctl(folder, run).code == 0);
  fs::remove(file);
  std::vector<std::string> more = run;
  more.insert(more.end(), {"--set", "train.epochs=2"});
  const Finished resumed = trainctl(folder, more);
  INFO(tail(resumed.errors));
  REQUIRE(resumed.code == 0);
  CHECK(end_of(folder / "run").at("step") == 6);
  // Another run starts from the weights of this run.
  const std::string next = folder.write("next.yaml", config_of("run", ""));
  REQUIRE(trainctl(folder, {"run", next, "--run-dir", folder / "next"}).code == 0);
  CHECK(end_of(folder / "next").at("weights_sha256") == end_of(folder / "run").at("weights_sha256"));
}

TEST_CASE("check and run report weights that do not match or cannot be read") {
  const Folder folder;
  const std::string file = golden + "small.safetensors";
  const std::string config = folder.write("small.yaml", config_of(file, ", skip: [features.3.*]"));
  const Finished check = trainctl(folder, {"check", config});
  INFO(check.errors);
  CHECK(check.code == 2);
  CHECK(contains(check.errors,
                 format("small.yaml:15:11: {}: no tensor of the network uses 'head.1.weight' (192)", file)));
  CHECK(count(check.errors, "no tensor of the network uses") == 4);
  for (const char* ranks : {"1", "2"}) {
    const Finished run = trainctl(folder, {"run", config, "--ranks", ranks, "--run-dir", folder / "run"});
    CAPTURE(ranks, run.errors);
    CHECK(run.code == 2);
    CHECK(count(run.errors, "uses 'head.1.weight'") == 1);
    CHECK_FALSE(fs::exists(folder / "run"));
  }
  const Finished json = trainctl(folder, {"check", config, "--json"});
  CHECK(Json::parse(json.out).at("errors").size() == 4);
  folder.write("damaged.keras", read_file(golden + "small.keras").substr(0, 50'000));
  const std::string damaged = folder.write("damaged.yaml", config_of("damaged.keras"));
  for (const char* command : {"check", "run"}) {
    const Finished refused = trainctl(folder, {command, damaged});
    INFO(refused.errors);
    CHECK(refused.code == 3);
    CHECK(contains(refused.errors, "damaged.keras"));
  }
  const Finished well = trainctl(folder, {"check", folder.write("well.yaml", config_of(file))});
  INFO(well.errors);
  CHECK(well.code == 0);
  CHECK(contains(well.errors, "by torch's names: 12 of 12 tensors"));
}

}  // namespace
}  // namespace trainctl::test::weights_test
