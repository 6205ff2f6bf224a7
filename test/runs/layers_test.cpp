// Tests whole runs of networks with many kinds of layers: the same bits on any number of ranks in reproducible mode,
// the same losses under other strategies, and a loss that falls.
#include <cmath>

#include "core/base/format.h"
#include "test/catch.h"
#include "test/support/command.h"
#include "test/support/configs.h"

namespace trainctl::test::layers_test {
namespace {

const std::string image_model = R"(
model:
  layers:
    - conv2d_transpose: {filters: 12, kernel_size: 2, strides: 2, kernel_regularizer: {l2: 1e-4}}
    - prelu: {shared_axes: [1, 2]}
    - depthwise_conv2d: {kernel_size: 3, padding: same, strides: 2, activation: relu6}
    - group_normalization: {name: n, groups: 3}
    - separable_conv2d: {filters: 12, kernel_size: 3, padding: same, activation: mish}
    - spatial_dropout: 0.1
    - gaussian_noise: {name: noisy, stddev: 0.05}
    - global_average_pooling2d
    - reshape: {target_shape: [1, 1, 12]}
    - conv2d: {name: factors, filters: 12, kernel_size: 1, activation: hard_sigmoid}
    - multiply: {name: scaled, from: [noisy, factors]}
    - conv2d: {name: other, filters: 12, kernel_size: 3, padding: same, activation: elu, from: n}
    - maximum: {from: [scaled, other]}
    - cropping2d: {cropping: 1}
    - upsampling2d: {interpolation: bilinear}
    - global_max_pooling2d
    - dense: {units: 5, activation: softmax}
)";

const std::string series_model = R"(
model:
  layers:
    - reshape: {target_shape: [16, 12]}
    - lambda: {expression: x * scale, weights: {scale: {shape: [1, 1, 12], initializer: ones}}}
    - conv1d: {filters: 16, kernel_size: 3, padding: causal, activation: selu}
    - dense: {units: 64, activation: tanh}
    - dense: 16
    - lstm: {units: 12, return_sequences: true}
    - permute: {dims: [2, 1]}
    - permute: {dims: [2, 1]}
    - gru: {units: 12}
    - dense: {units: 5, activation: softmax, kernel_initializer: orthogonal}
)";

const std::string volume_model = R"(
model:
  layers:
    - reshape: {target_shape: [4, 8, 6, 1]}
    - conv3d: {filters: 8, kernel_size: [2, 3, 3], padding: same, activation: relu}
    - max_pooling3d: {pool_size: [1, 2, 2]}
    - zero_padding3d: [1, 0, 1]
    - conv3d: {filters: 12, kernel_size: 3, use_bias: false, kernel_regularizer: {l2: 1e-4}}
    - group_normalization: {groups: 3}
    - residual:
        layers:
          - conv3d: {filters: 12, kernel_size: 3, padding: same, activation: elu}
          - conv3d: {filters: 12, kernel_size: 1, groups: 2}
        activation: relu
    - conv3d_transpose: {filters: 8, kernel_size: 3, strides: [1, 2, 2], padding: same, activation: tanh}
    - average_pooling3d: {pool_size: 2, strides: 1, padding: same}
    - upsampling3d: [2, 1, 1]
    - cropping3d: [1, 1, 0]
    - spatial_dropout: 0.1
    - global_average_pooling3d
    - dense: {units: 5, activation: softmax}
)";

std::string config_of(const std::string& model) {
  return uneven_data + model + train_section("batch_size: 24, epochs: 5, optimizer: {name: adam, learning_rate: 3e-3}");
}

std::string hash_of(const std::string& run_directory) {
  return events(run_directory, "end").back().at("weights_sha256");
}

TEST_CASE("networks of many kinds of layers have the same bits on any number of ranks") {
  const Folder folder;
  for (const auto& [name, model] :
       {std::pair{"images", image_model}, {"series", series_model}, {"volumes", volume_model}}) {
    const std::string config =
        folder.write(format("{}.yaml", name), config_of(model) + "strategy: {reproducible: {shards: 4}}\n");
    std::string first;
    for (const int ranks : {1, 2, 3}) {
      const std::string directory = folder / format("{}-{}", name, ranks);
      const Finished run = trainctl(folder, {"run", config, "--ranks", std::to_string(ranks), "--run-dir", directory});
      CAPTURE(name, ranks, tail(run.errors));
      REQUIRE(run.code == 0);
      if (first.empty()) first = hash_of(directory);
      CHECK(hash_of(directory) == first);
    }
    const std::map<std::int64_t, double> losses = step_losses(folder / format("{}-1", name));
    CHECK(losses.rbegin()->second < losses.begin()->second);
  }
}

TEST_CASE("networks of many kinds of layers have the same losses under other strategies") {
  const Folder folder;
  const std::pair<const char*, std::vector<std::string>> strategies[] = {
      {"data", {}}, {"tensor", {"--set", "strategy.tensor=2"}}, {"pipeline", {"--set", "strategy.pipeline=2"}}};
  for (const auto& [name, model] :
       {std::pair{"images", image_model}, {"series", series_model}, {"volumes", volume_model}}) {
    const std::string config = folder.write(format("{}.yaml", name), config_of(model));
    const std::string alone = folder / format("{}-alone", name);
    REQUIRE(trainctl(folder, {"run", config, "--ranks", "1", "--run-dir", alone}).code == 0);
    const std::map<std::int64_t, double> expected = step_losses(alone);
    for (const auto& [strategy, settings] : strategies) {
      const std::string directory = folder / format("{}-{}", name, strategy);
      std::vector<std::string> arguments{"run", config, "--ranks", "2", "--run-dir", directory};
      arguments.insert(arguments.end(), settings.begin(), settings.end());
      const Finished run = trainctl(folder, arguments);
      CAPTURE(name, strategy, tail(run.errors));
      REQUIRE(run.code == 0);
      const std::map<std::int64_t, double> losses = step_losses(directory);
      REQUIRE(losses.size() == expected.size());
      for (const auto& [step, loss] : expected) {
        CAPTURE(step);
        CHECK(losses.at(step) == Approx(loss).epsilon(1e-3));
      }
    }
  }
}

}  // namespace
}  // namespace trainctl::test::layers_test
