// Tests that sums over parameters or samples are the same on every mesh: penalties, and R² of targets far from 0.
#include <cmath>

#include "core/base/format.h"
#include "io/checkpoint/load.h"
#include "test/catch.h"
#include "test/support/command.h"
#include "test/support/files.h"

namespace trainctl::test::mesh_values_test {
namespace {

constexpr int samples = 24;

std::vector<float> targets() {
  std::vector<float> y;
  for (int i = 0; i < samples; ++i) y.push_back(250000.0f + static_cast<float>((i * 7) % 24) / 8);
  return y;
}

// Penalised layers, and a last layer whose output is always 250000.5.
std::string config_of(const Folder& folder) {
  std::vector<float> x;
  for (int i = 0; i < samples * 6; ++i) x.push_back(static_cast<float>((i * 5) % 13) / 13 - 0.5f);
  folder.write("x.npy", npy("<f4", format("({}, 6)", samples), raw(x)));
  folder.write("y.npy", npy("<f4", format("({}, 1)", samples), raw(targets())));
  return folder.write("values.yaml", R"(data: {dataset: npy, x: x.npy, y: y.npy}
model:
  layers:
    - dense: {name: first, units: 64, activation: relu, kernel_regularizer: {l1: 0.01, l2: 0.02}}
    - dense: {name: second, units: 64, activation: tanh, kernel_regularizer: {l2: 0.5}}
    - dense: {name: third, units: 64, activation: tanh, bias_regularizer: {l1: 1}}
    - dense: {name: last, units: 1, kernel_initializer: zeros, bias_initializer: {name: constant, value: 250000.5}}
train:
  batch_size: 8
  epochs: 2
  loss: mean_squared_error
  metrics: [r2_score]
  optimizer: {name: sgd, learning_rate: 1e-6}
)");
}

// The sum of l1 |w| + l2 w² over the weights of a run's last checkpoint, in float64.
double penalty_of(const std::string& directory) {
  const LoadedCheckpoint checkpoint = load_named_checkpoint(directory);
  double sum = 0;
  for (const NamedTensor& tensor : checkpoint.snapshot.weights) {
    const bool first = tensor.name == "first/kernel", second = tensor.name == "second/kernel";
    const double l1 = first ? 0.01 : tensor.name == "third/bias" ? 1 : 0, l2 = first ? 0.02 : second ? 0.5 : 0;
    for (std::int64_t i = 0; i < tensor.view.count; ++i) {
      const double w = tensor.view.as<float>()[i];
      sum += l1 * std::abs(w) + l2 * w * w;
    }
  }
  return sum;
}

}  // namespace

TEST_CASE("penalties and R² on every mesh are those of one rank") {
  const Folder folder;
  const std::string config = config_of(folder);
  double mean = 0, around = 0, residual = 0;
  for (const float t : targets()) mean += static_cast<double>(t) / samples;
  for (const float t : targets()) {
    around += (t - mean) * (t - mean);
    residual += (t - 250000.5) * (t - 250000.5);
  }
  struct Mesh {
    const char *ranks, *pipeline, *tensor;
  };
  double of_one = 0;
  for (const Mesh& mesh : {Mesh{"1", "1", "1"},
                           {"2", "1", "2"},
                           {"2", "2", "1"},
                           {"4", "1", "2"},
                           {"4", "2", "1"},
                           {"4", "2", "2"},
                           {"4", "4", "1"},
                           {"4", "1", "4"}}) {
    const std::string directory = folder / format("run-{}-{}-{}", mesh.ranks, mesh.pipeline, mesh.tensor);
    CAPTURE(directory);
    const Finished run = trainctl(
        folder, {"run", config, "--ranks", mesh.ranks, "--run-dir", directory, "--set",
                 format("strategy.pipeline={}", mesh.pipeline), "--set", format("strategy.tensor={}", mesh.tensor)});
    INFO(tail(run.errors));
    REQUIRE(run.code == 0);
    const Json train = events(directory, "epoch").back()["train"];
    INFO(train.dump());
    CHECK(train["r2_score"].get<double>() == Approx(1 - residual / around).margin(1e-4));
    const double penalty = train["regularization_loss"];
    CHECK(penalty > 1);
    CHECK(penalty == Approx(penalty_of(directory)).epsilon(1e-6));
    if (of_one == 0) of_one = penalty;
    CHECK(penalty == Approx(of_one).epsilon(1e-6));
  }
}

TEST_CASE("an output that is wider than the number of classes is reported once, and one that fits is not") {
  const Folder folder;
  for (const int units : {3, 4, 6}) {
    CAPTURE(units);
    const std::string config = folder.write(format("wide-{}.yaml", units), format(R"(
data: {{dataset: synthetic, samples: 12, shape: [4], classes: 3}}
model: {{layers: [{{dense: {{units: {}, activation: softmax}}}}]}}
train: {{batch_size: 4, epochs: 1, loss: sparse_categorical_crossentropy, optimizer: sgd}}
)",
                                                                                  units));
    const Finished run = trainctl(folder, {"run", config, "--ranks", "2"});
    INFO(tail(run.errors));
    CHECK(run.code == 0);
    CHECK(count(run.errors, "never right") == (units > 3 ? 1 : 0));
    const std::string useless = units == 4 ? "1 value is" : "3 values are";
    const std::string message =
        format("the output has {} values and the data 3 classes, so that {} never right: set 3 units", units, useless);
    CHECK(contains(run.errors, message) == (units > 3));
  }
}

}  // namespace trainctl::test::mesh_values_test
