// Tests a network that continues another one, which uses a layer twice, after one of its layers: training and
// predictions.
#include <algorithm>
#include <random>

#include "core/base/format.h"
#include "io/checkpoint/load.h"
#include "test/catch.h"
#include "test/support/command.h"
#include "test/support/files.h"

namespace trainctl::test::until_test {
namespace {

std::vector<float> weights_of(const Folder& folder, const std::string& run, const std::string& name) {
  const LoadedCheckpoint checkpoint = load_named_checkpoint(folder / ("runs/" + run));
  for (const NamedTensor& tensor : checkpoint.snapshot.weights) {
    if (tensor.name == name) return {tensor.view.as<float>(), tensor.view.as<float>() + tensor.view.count};
  }
  return {};
}

// Writes 8 bright and 8 dark pictures into the folders `bright` and `dark`.
void write_pictures(const Folder& folder) {
  std::mt19937 random(5);
  for (int n = 0; n < 16; ++n) {
    std::string pixels;
    for (int p = 0; p < 8 * 8 * 3; ++p) pixels += static_cast<char>((n % 2 == 0 ? 130 : 0) + random() % 120);
    folder.write(format("pictures/{}/{}.png", n % 2 == 0 ? "bright" : "dark", n), png(8, 8, 2, pixels));
  }
}

}  // namespace

TEST_CASE("a network that uses a layer twice is cut after it, keeps its weights, trains and predicts") {
  const Folder folder;
  write_pictures(folder);
  const std::string data = "data: {dataset: image_folder, path: pictures, transform: [{rescale: 1/255}]}\n";
  const std::string model = R"(
model:
  layers:
    - conv2d: {name: first, filters: 4, kernel_size: 3, padding: same, activation: relu}
    - conv2d: {name: again, filters: 4, kernel_size: 3, padding: same, activation: relu}
    - conv2d: {name: again, filters: 4, kernel_size: 3, padding: same, activation: relu}
    - global_average_pooling2d: {name: pool}
    - dense: {name: mix, units: 4, activation: tanh}
    - dense: {name: mix, units: 4, activation: tanh}
    - dense: {name: old, units: 2, activation: softmax}
)";
  const std::string net = folder.write("net.yaml", data + model + R"(
train: {batch_size: 4, epochs: 2, loss: sparse_categorical_crossentropy, optimizer: {name: adam, learning_rate: 0.01}}
)");
  const auto expect_end = [&](const std::vector<std::string>& command) {
    const Finished run = trainctl(folder, command);
    INFO(tail(run.errors));
    REQUIRE(run.code == 0);
    return run.out;
  };
  expect_end({"run", net, "--ranks", "1"});
  folder.write("trained.yaml", model + "  weights: runs/net/checkpoints/last/weights.safetensors\n");
  const std::string mine = folder.write("mine.yaml", data + R"(
model:
  include: trained.yaml
  until: mix
  layers: [{dense: {name: new, units: 2, activation: softmax}}]
  freeze: [first, again]
train: {batch_size: 4, epochs: 1, loss: sparse_categorical_crossentropy, optimizer: {name: adam, learning_rate: 0.01}}
)");
  for (const char* ranks : {"1", "2"}) {
    CAPTURE(ranks);
    expect_end({"run", mine, "--ranks", ranks, "--run-dir", folder / (std::string("runs/mine-") + ranks)});
    const std::string run = std::string("mine-") + ranks;
    for (const char* kept : {"first/kernel", "again/kernel", "again/bias"}) {
      CAPTURE(kept);
      const std::vector<float> before = weights_of(folder, "net", kept);
      CHECK_FALSE(before.empty());
      CHECK(weights_of(folder, run, kept) == before);
    }
    // Four steps of 0.01 change a weight by 0.04 at most, so they started from the weights of the other network.
    const std::vector<float> before = weights_of(folder, "net", "mix/kernel"),
                             after = weights_of(folder, run, "mix/kernel");
    REQUIRE(before.size() == 16);
    REQUIRE(after.size() == 16);
    float largest = 0;
    for (std::size_t i = 0; i < 16; ++i) largest = std::max(largest, std::abs(after[i] - before[i]));
    CHECK(largest > 0);
    CHECK(largest < 0.06f);
    CHECK(weights_of(folder, run, "new/kernel").size() == 8);
    CHECK(weights_of(folder, run, "old/kernel").empty());
    const std::string rows = expect_end({"predict", folder / ("runs/" + run), folder / "pictures"});
    CHECK(count(rows, "\n") == 17);
    CHECK(contains(rows, "input,prediction,bright,dark\n"));
  }
}

}  // namespace trainctl::test::until_test
