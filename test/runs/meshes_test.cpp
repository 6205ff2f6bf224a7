// Tests that every strategy, every combination of two mesh axes, and sharded replicas with them, learn what one rank
// learns on the same micro-batches.
#include <algorithm>
#include <cmath>
#include <random>

#include "core/base/format.h"
#include "io/checkpoint/load.h"
#include "test/catch.h"
#include "test/support/command.h"
#include "test/support/configs.h"
#include "test/support/files.h"

namespace trainctl::test::meshes_test {
namespace {

// Micro-batches of a global batch on all replicas together; each has the same samples on every mesh.
constexpr int micro_batches = 4;

struct OnMesh {
  int ranks = 1;
  int pipeline = 1;
  int tensor = 1;
  const char* shard = "none";

  int replicas() const { return ranks / pipeline / tensor; }
  std::vector<std::string> settings() const {
    const char* cut = pipeline > 1 ? "strategy.micro_batches" : "train.gradient_accumulation";
    return {format("strategy.pipeline={}", pipeline), format("strategy.tensor={}", tensor),
            format("strategy.shard={}", shard), format("{}={}", cut, micro_batches / replicas())};
  }
};

constexpr OnMesh meshes[] = {
    {2},
    {4},
    {2, 2},
    {4, 4},
    {2, 1, 2},
    {4, 1, 4},
    {2, 1, 1, "optimizer"},
    {2, 1, 1, "gradients"},
    {4, 1, 1, "parameters"},
    {4, 2, 1},
    {4, 1, 2},
    {4, 2, 2},
    {4, 2, 1, "parameters"},
    {4, 1, 2, "parameters"},
};

// Further meshes for small networks.
const std::vector<OnMesh> sharded_meshes = {{4, 1, 2, "optimizer"}, {4, 1, 2, "gradients"}, {8, 2, 2, "parameters"}};

// All weights of the last checkpoint, put together from the ranks' shards.
std::vector<float> weights_of(const std::string& run_directory) {
  const LoadedCheckpoint checkpoint = load_named_checkpoint(run_directory);
  std::vector<float> all;
  for (const NamedTensor& tensor : checkpoint.snapshot.weights) {
    const auto* values = tensor.view.as<float>();
    all.insert(all.end(), values, values + tensor.view.count);
  }
  return all;
}

std::string train_on(const Folder& folder, const std::string& config, const OnMesh& mesh) {
  const std::string directory = folder / format("{}-{}-{}-{}", mesh.ranks, mesh.pipeline, mesh.tensor, mesh.shard);
  std::vector<std::string> command = {"run",       config,    "--ranks",    std::to_string(mesh.ranks),
                                      "--run-dir", directory, "--progress", "none"};
  for (const std::string& setting : mesh.settings()) command.insert(command.end(), {"--set", setting});
  const Finished run = trainctl(folder, command);
  INFO(config << tail(run.errors));
  REQUIRE(run.code == 0);
  return directory;
}

// Trains 30 steps on every mesh. `rounding` is the largest difference of a weight that the order of sums may cause.
void compare(const Folder& folder, const std::string& config, double rounding,
             const std::vector<OnMesh>& further = {}) {
  const std::string one = train_on(folder, config, {});
  const auto expected = step_losses(one);
  const std::vector<float> weights = weights_of(one);
  REQUIRE(expected.size() == 30);
  std::vector<OnMesh> all(std::begin(meshes), std::end(meshes));
  all.insert(all.end(), further.begin(), further.end());
  for (const OnMesh& mesh : all) {
    const std::string many = train_on(folder, config, mesh);
    CAPTURE(many);
    const auto found = step_losses(many);
    REQUIRE(found.size() == expected.size());
    for (const auto& [step, loss] : expected) {
      CAPTURE(step);
      CHECK(found.at(step) == Approx(loss).epsilon(1e-4));
    }
    const std::vector<float> gathered = weights_of(many);
    REQUIRE(gathered.size() == weights.size());
    double difference = 0;
    for (std::size_t i = 0; i < weights.size(); ++i) {
      difference = std::max<double>(difference, std::abs(gathered[i] - weights[i]));
    }
    INFO(difference);
    CHECK(difference < rounding);
  }
}

const std::string momentum = "optimizer: {name: sgd, learning_rate: 0.05, momentum: 0.9}";

TEST_CASE("an MLP learns the same on every mesh") {
  const Folder folder;
  compare(folder,
          folder.write("mlp.yaml", uneven_data + mlp_model + train_section("batch_size: 20, epochs: 5, " + momentum)),
          1e-4, sharded_meshes);
}

TEST_CASE("a CNN with skips learns the same on every mesh") {
  const Folder folder;
  compare(folder,
          folder.write("skips.yaml", uneven_data + skip_model +
                                         train_section("batch_size: 20, epochs: 5, clip_norm: 1, " + momentum)),
          1e-4, sharded_meshes);
}

TEST_CASE("layers that share weights learn the same on every mesh") {
  const Folder folder;
  compare(folder,
          folder.write("shared.yaml", uneven_data + shared_model +
                                          train_section("batch_size: 20, epochs: 5, clip_norm: 1, " + momentum)),
          1e-4);
}

TEST_CASE("a network of two inputs and two outputs learns the same on every mesh") {
  const Folder folder;
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  constexpr std::int64_t samples = 103;
  std::vector<float> image(samples * 6 * 6), table(samples * 3), size(samples);
  std::vector<std::int64_t> kind(samples);
  for (std::vector<float>* values : {&image, &table, &size})
    std::generate(values->begin(), values->end(), [&] { return normal(random); });
  for (std::int64_t& value : kind) value = static_cast<std::int64_t>(random() % 4);
  folder.write("image.npy", npy("<f4", format("({}, 6, 6, 1)", samples), raw(image)));
  folder.write("table.npy", npy("<f4", format("({}, 3)", samples), raw(table)));
  folder.write("kind.npy", npy("<i8", format("({},)", samples), raw(kind)));
  folder.write("size.npy", npy("<f4", format("({}, 1)", samples), raw(size)));
  compare(folder, folder.write("both.yaml", R"(
data: {dataset: npy, x: {image: image.npy, table: table.npy}, y: {kind: kind.npy, size: size.npy}}
model:
  inputs: [image, table]
  layers:
    - conv2d: {from: image, filters: 8, kernel_size: 3, activation: relu}
    - flatten: {name: pixels}
    - dense: {name: numbers, from: table, units: 16, activation: relu}
    - concatenate: {from: [pixels, numbers]}
    - dense: {name: trunk, units: 32, activation: relu}
    - dense: {name: kind, units: 4, activation: softmax}
    - dense: {name: size, from: trunk, units: 1}
  outputs: [kind, size]
train:
  batch_size: 20
  epochs: 5
  loss: {kind: sparse_categorical_crossentropy, size: huber}
  loss_weights: {size: 2}
  optimizer: {name: adam, learning_rate: 3e-3}
log: {every: 1 steps}
)"),
          1e-3);
}

TEST_CASE("a network on sequences of tokens learns the same on every mesh") {
  const Folder folder;
  std::mt19937 random(7);
  constexpr std::int64_t sequences = 103, length = 6, tokens = 12;
  std::vector<std::int64_t> x, y;
  for (std::int64_t i = 0; i < sequences * length; ++i) {
    x.push_back(static_cast<std::int64_t>(random() % tokens));
    y.push_back((x.back() * 5 + 3) % tokens);
  }
  folder.write("x.npy", npy("<i8", format("({}, {})", sequences, length), raw(x)));
  folder.write("y.npy", npy("<i8", format("({}, {})", sequences, length), raw(y)));
  // Each rank holds some rows of a table of this size.
  const std::string config = folder.write("sequence.yaml", format(R"(
data: {{dataset: npy, x: x.npy, y: y.npy}}
model:
  layers:
    - embedding: {{input_dim: 600, output_dim: 64}}
    - dense: {{units: 256, activation: relu}}
    - dense: {{units: 64}}
    - layer_normalization
    - dense: {{units: {}, activation: softmax}}
train: {{batch_size: 20, epochs: 5, loss: sparse_categorical_crossentropy, metrics: [accuracy],
        optimizer: {{name: adam, learning_rate: 3e-3}}}}
log: {{every: 1 steps}}
)",
                                                                  tokens));
  compare(folder, config, 1e-3);
  const Finished check = trainctl(folder, {"check", config, "--ranks", "2", "--set", "strategy.tensor=2"});
  INFO(check.out << check.errors);
  CHECK(contains(check.out, "[0:300, 0:64]"));
}

// Twenty layers of batch normalization and relu amplify a rounding error a hundredfold in a few steps: with a rate of
// 0.02 and momentum, one rank on two threads differs from one rank on one thread by 1e-3 within ten steps.
TEST_CASE("ResNet-20 learns the same on every mesh from the same micro-batches") {
  const Folder folder;
  compare(folder, folder.write("resnet.yaml", R"(
data: {dataset: synthetic, samples: 960, shape: [32, 32, 3], classes: 10}
model: {preset: resnet20}
log: {every: 1 steps}
)" + train_section("batch_size: 32, epochs: 1, optimizer: {name: sgd, learning_rate: 1e-3}")),
          1e-3);
}

}  // namespace
}  // namespace trainctl::test::meshes_test
