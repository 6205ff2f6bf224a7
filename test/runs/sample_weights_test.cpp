// Tests weights of samples and classes, penalties and metrics in whole runs: Keras' values on any number of ranks.
#include <cmath>

#include "core/base/format.h"
#include "test/catch.h"
#include "test/support/command.h"
#include "test/support/files.h"

namespace trainctl::test::sample_weights_test {
namespace {

// Writes samples of two numbers for each position.
void write_x(const Folder& folder, int samples, int positions) {
  std::vector<float> x;
  for (int i = 0; i < samples; ++i) {
    for (int p = 0; p < positions; ++p) {
      x.push_back(static_cast<float>((i * 7 + p * 3) % 5) / 4 - 0.5f);
      x.push_back(static_cast<float>((i * 3 + p) % 7) / 6 - 0.4f);
    }
  }
  const std::string shape = positions == 1 ? format("({}, 2)", samples) : format("({}, {}, 2)", samples, positions);
  folder.write("x.npy", npy("<f4", shape, raw(x)));
}

// Twelve samples of three classes; the last four have weight 0.
void write_samples(const Folder& folder) {
  write_x(folder, 12, 1);
  std::vector<std::int64_t> y;
  std::vector<float> weights;
  const float of_each[] = {0, 2, 0.5, 1};
  for (int i = 0; i < 12; ++i) {
    y.push_back((i * i + i / 2) % 3);
    weights.push_back(i < 8 ? of_each[i % 4] : 0);
  }
  folder.write("y.npy", npy("<i8", "(12,)", raw(y)));
  folder.write("w.npy", npy("<f4", "(12,)", raw(weights)));
}

std::string config_of(const Folder& folder, const std::string& data, const std::string& train,
                      const std::string& layer = "") {
  return folder.write("weights.yaml", format(R"(data: {{dataset: npy, x: x.npy, y: y.npy, shuffle: false{}}}
model: {{layers: [{{dense: {{units: 3, activation: softmax, kernel_initializer: zeros{}}}}}]}}
log: {{every: 1 steps}}
train:
  batch_size: 4
  loss: sparse_categorical_crossentropy
  {}
)",
                                             data, layer, train));
}

const std::string keras_sgd = "optimizer: {name: sgd, learning_rate: 0.5}";

// The losses of the steps of a run with these arguments.
std::vector<double> losses_of(const Folder& folder, const std::string& config, std::vector<std::string> more) {
  static int runs = 0;
  const std::string directory = format("run-{}", ++runs);
  more.insert(more.begin(), {"run", config, "--run-dir", directory});
  const Finished run = trainctl(folder, more);
  INFO(tail(run.errors));
  REQUIRE(run.code == 0);
  std::vector<double> losses;
  for (const auto& [step, loss] : step_losses(folder / directory)) losses.push_back(loss);
  return losses;
}

void check_close(const std::vector<double>& losses, const std::vector<double>& expected) {
  REQUIRE(losses.size() == expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    CAPTURE(i);
    CHECK(losses[i] == Approx(expected[i]).margin(4e-6));
  }
}

std::string with_lines(std::string train) {
  for (std::size_t at; (at = train.find("; ")) != std::string::npos;) train.replace(at, 2, "\n  ");
  return train;
}

}  // namespace

// The losses are those of Keras 3.15's train_on_batch. No gradient of these samples is near 0, since Adam's first step
// depends on its sign only. In the second and fourth case every third batch has only samples of weight 0: Adam takes a
// step with a gradient of 0.
TEST_CASE("the loss of weighted samples is divided by their number, or by the sum of their weights, as in Keras") {
  const Folder folder;
  write_samples(folder);
  const std::string adam = "optimizer: {name: adam, learning_rate: 0.1, epsilon_hat: true}; max_steps: 6; ";
  const std::string classes = adam + "class_weights: {0: 1, 1: 5, 2: 0.7}; ",
                    by_weight = "loss_reduction: mean_with_sample_weight";
  struct Case {
    std::string data, train;
    std::vector<double> losses;
  };
  const Case cases[] = {
      {"", classes, {3.213441, 2.173795, 1.938687, 2.473751, 1.817182, 1.686142}},
      {", weights: w.npy", adam, {0.961286, 0.976584, 0, 0.782997, 0.856652, 0}},
      {"", classes + by_weight, {1.098612, 1.086901, 1.003999, 0.84518, 0.892892, 0.862962}},
      {", weights: w.npy", adam + by_weight, {1.098612, 1.116095, 0, 0.894854, 0.979031, 0}},
  };
  for (const Case& c : cases) {
    const std::string config = config_of(folder, c.data, with_lines(c.train));
    CAPTURE(c.data, c.train);
    check_close(losses_of(folder, config, {"--ranks", "1"}), c.losses);
    check_close(losses_of(folder, config, {"--ranks", "3"}), c.losses);
    check_close(losses_of(folder, config, {"--ranks", "2", "--set", "train.gradient_accumulation=2"}), c.losses);
    check_close(losses_of(folder, config, {"--ranks", "2", "--set", "strategy.reproducible.shards=4"}), c.losses);
  }
}

TEST_CASE("the loss of weighted positions is divided by the number of positions, as in Keras") {
  const Folder folder;
  write_x(folder, 8, 3);
  std::vector<std::int64_t> y;
  std::vector<float> weights;
  const float of_each[] = {0, 1, 2.5};
  for (int i = 0; i < 8; ++i) {
    for (int p = 0; p < 3; ++p) {
      y.push_back((i + p * p) % 3);
      weights.push_back(of_each[(i + p) % 3]);
    }
  }
  folder.write("y.npy", npy("<i8", "(8, 3)", raw(y)));
  folder.write("w.npy", npy("<f4", "(8, 3)", raw(weights)));
  const std::string config = config_of(folder, ", weights: w.npy", with_lines(keras_sgd + "; max_steps: 6"));
  const std::vector<double> expected{1.281714, 1.231523, 1.166119, 1.147115, 1.110604, 1.099796};
  for (const char* ranks : {"1", "2"}) check_close(losses_of(folder, config, {"--ranks", ranks}), expected);
}

TEST_CASE("penalties are reported apart from the loss, and are those of the weights on any mesh") {
  const Folder folder;
  write_samples(folder);
  const std::string penalty = ", kernel_regularizer: {l1: 0.01, l2: 0.02}";
  const std::string classes = keras_sgd + "; epochs: 3; class_weights: {0: 1, 1: 5, 2: 0.7}";
  const std::string config = config_of(folder, "", with_lines(classes), penalty);
  // The kernel after these epochs, computed by gradient descent in float64, and its penalty. (Keras on JAX
  // differs: its derivative of |w| at 0 is 1.)
  double expected = 0;
  for (const double w : {-0.409912, 0.394806, 0.005122, -0.016518, -0.033113, 0.040765}) {
    expected += 0.01 * std::abs(w) + 0.02 * w * w;
  }
  const std::vector<std::vector<std::string>> ways{
      {"--ranks", "1"}, {"--ranks", "2"}, {"--ranks", "2", "--set", "strategy.shard=parameters"}};
  for (std::size_t i = 0; i < ways.size(); ++i) {
    std::vector<std::string> arguments{"run", config, "--run-dir", format("penalty-{}", i)};
    arguments.insert(arguments.end(), ways[i].begin(), ways[i].end());
    const Finished run = trainctl(folder, arguments);
    INFO(tail(run.errors));
    REQUIRE(run.code == 0);
    const Json train = events(folder / format("penalty-{}", i), "epoch").back()["train"];
    INFO(train.dump());
    CHECK(train["regularization_loss"].get<double>() == Approx(expected).margin(2e-6));
    CHECK(train["loss"].get<double>() < 2);
  }
}

TEST_CASE("an epoch whose samples all have weight 0 is an error, and such validation data leads to a warning") {
  const Folder folder;
  write_samples(folder);
  folder.write("w.npy", npy("<f4", "(12,)", raw(std::vector<float>(12, 0.0f))));
  const std::string config = config_of(folder, ", weights: w.npy", with_lines(keras_sgd + "; epochs: 30"));
  for (const char* ranks : {"1", "2"}) {
    const Finished run = trainctl(folder, {"run", config, "--ranks", ranks, "--run-dir", std::string("none-") + ranks});
    CHECK(run.code != 0);
    CHECK(contains(run.errors, "no sample of epoch 1 weighs more than 0"));
    CHECK(!contains(run.errors, "internal error"));
  }
  const std::string validated = config_of(
      folder, ", validation: {x: x.npy, y: y.npy, weights: w.npy}",
      with_lines(keras_sgd + "; epochs: 2; early_stopping: {monitor: val_accuracy, patience: 5}; metrics: [accuracy]"));
  const Finished run = trainctl(folder, {"run", validated, "--ranks", "1", "--run-dir", "validated"});
  INFO(tail(run.errors));
  CHECK(run.code == 0);
  CHECK(count(run.errors, "all validation samples have weight 0") == 1);
  CHECK(events(folder / "validated", "epoch").back()["validation"]["accuracy"] == "NaN");
}

TEST_CASE("auc of a single class is not a number, and the warning says what it requires") {
  const Folder folder;
  write_x(folder, 12, 1);
  folder.write("y.npy", npy("<i8", "(12,)", raw(std::vector<std::int64_t>(12, 1))));
  const std::string config = folder.write("auc.yaml", R"(data: {dataset: npy, x: x.npy, y: y.npy, classes: 2}
model: {layers: [{dense: {units: 1}}]}
train:
  batch_size: 4
  epochs: 3
  loss: binary_crossentropy
  metrics: [auc, specificity, recall]
  optimizer: sgd
checkpoint: {monitor: auc}
)");
  const Finished run = trainctl(folder, {"run", config, "--ranks", "2", "--run-dir", "auc"});
  INFO(tail(run.errors));
  REQUIRE(run.code == 0);
  CHECK(count(run.errors, "auc is not defined at step 3: it requires samples of both answers") == 1);
  CHECK(count(run.errors, "specificity is not defined at step 3") == 1);
  const Json train = events(folder / "auc", "epoch").back()["train"];
  CHECK(train["auc"] == "NaN");
  CHECK(train["specificity"] == "NaN");
  CHECK(train["recall"].is_number());
}

TEST_CASE("a run and an evaluation warn once of scores that are 0 since no target is positive") {
  const Folder folder;
  write_x(folder, 12, 1);
  folder.write("y.npy", npy("<i8", "(12,)", raw(std::vector<std::int64_t>(12, 0))));
  const std::string config = folder.write("recall.yaml", R"(data: {dataset: npy, x: x.npy, y: y.npy, classes: 2}
model: {layers: [{dense: {units: 1}}]}
train:
  batch_size: 4
  epochs: 3
  loss: binary_crossentropy
  metrics: [recall]
  optimizer: sgd
)");
  const Finished run = trainctl(folder, {"run", config, "--run-dir", "recall"});
  INFO(tail(run.errors));
  REQUIRE(run.code == 0);
  const std::string why = "recall counts as 0, since no sample has a positive target";
  CHECK(count(run.errors, why + ", in the training data at step 3") == 1);
  CHECK(count(run.errors, why) == 1);
  CHECK(events(folder / "recall", "epoch").back()["train"]["recall"] == 0);
  const Finished eval = trainctl(folder, {"eval", config, "--run", "recall", "--data", "training"});
  INFO(tail(eval.errors));
  REQUIRE(eval.code == 0);
  CHECK(count(eval.errors, why) == 1);
}

// Compares with the definition of the coefficient; the prediction for every sample is the bias.
TEST_CASE("the coefficient of determination of targets far from 0 is right on any number of ranks") {
  const Folder folder;
  write_x(folder, 12, 1);
  std::vector<float> y;
  double mean = 0, around = 0, residual = 0;
  for (int i = 0; i < 12; ++i) y.push_back(static_cast<float>(10000000 + (i * 5) % 7 - 3));
  for (const float t : y) mean += static_cast<double>(t) / 12;
  for (const float t : y) {
    around += (t - mean) * (t - mean);
    residual += (t - 10000001.0) * (t - 10000001.0);
  }
  folder.write("y.npy", npy("<f4", "(12, 1)", raw(y)));
  const std::string config = folder.write("r2.yaml", R"(data: {dataset: npy, x: x.npy, y: y.npy}
model: {layers: [{dense: {units: 1, kernel_initializer: zeros, bias_initializer: {name: constant, value: 10000001}}}]}
train:
  batch_size: 6
  epochs: 1
  loss: mean_squared_error
  metrics: [r2_score]
  optimizer: {name: sgd, learning_rate: 1e-30}
)");
  for (const char* ranks : {"1", "2", "3", "4"}) {
    const std::string directory = std::string("r2-") + ranks;
    const Finished run = trainctl(folder, {"run", config, "--ranks", ranks, "--run-dir", directory});
    INFO(tail(run.errors));
    REQUIRE(run.code == 0);
    const Json train = events(folder / directory, "epoch").back()["train"];
    CHECK(train["r2_score"].get<double>() == Approx(1 - residual / around).margin(1e-5));
  }
}

}  // namespace trainctl::test::sample_weights_test
