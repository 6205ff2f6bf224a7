// Trains a perceptron, a convolutional network with skips, one whose layers share weights and one with frozen layers
// for 30 steps, and compares losses and weights with PyTorch's.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "core/backend/choices.h"
#include "core/exec/engine.h"
#include "parallel/comm/communicators.h"
#include "test/catch.h"
#include "test/core/ops/golden.h"
#include "test/core/program/job.h"

namespace trainctl::test::training_test {
namespace {

// A network of test/golden/make_training.py.
struct Network {
  const char* name;
  const char* model;
  const char* optimizer;
  const char* loss;
  double learning_rate;
  double clip_norm = 1;
};

const Network mlp{"mlp", R"(
layers:
  - flatten
  - dense: {name: first, units: 24, activation: gelu}
  - dense: {name: second, units: 16, activation: tanh}
  - dense: {name: predictions, units: 3, activation: softmax}
)",
                  "{name: adamw, weight_decay: 0.02, exclude_from_weight_decay: biases_and_norms}",
                  "sparse_categorical_crossentropy", 0.005};

const Network penalized{"penalized", R"(
layers:
  - flatten
  - dense:
      {name: first, units: 24, activation: gelu, kernel_regularizer: {l1: 0.003}, bias_regularizer: {l2: 0.01}}
  - dense: {name: second, units: 16, activation: tanh, kernel_regularizer: {l1: 0.002, l2: 0.02}}
  - dense: {name: predictions, units: 3, activation: softmax}
)",
                        "{name: sgd, momentum: 0.9, nesterov: true, weight_decay: 1e-3}",
                        "sparse_categorical_crossentropy", 0.05};

const Network cnn{"cnn", R"(
layers:
  - conv2d: {name: stem, filters: 8, kernel_size: 3, padding: same, activation: relu}
  - residual:
      name: stay
      layers:
        - conv2d: {name: conv1, filters: 8, kernel_size: 3, padding: same, use_bias: false}
        - batch_normalization: {name: bn1, momentum: 0.9}
        - activation: relu
        - conv2d: {name: conv2, filters: 8, kernel_size: 3, padding: same, use_bias: false}
        - batch_normalization: {name: bn2, momentum: 0.9}
      activation: relu
  - residual:
      name: shrink
      layers:
        - conv2d: {name: conv1, filters: 12, kernel_size: 3, strides: 2, padding: same, use_bias: false}
        - batch_normalization: {name: bn1, momentum: 0.9}
        - activation: relu
        - conv2d: {name: conv2, filters: 12, kernel_size: 3, padding: same, use_bias: false}
        - batch_normalization: {name: bn2, momentum: 0.9}
      shortcut:
        - conv2d: {name: conv, filters: 12, kernel_size: 1, strides: 2, use_bias: false}
        - batch_normalization: {name: bn, momentum: 0.9}
      activation: relu
  - max_pooling2d: {pool_size: 2}
  - global_average_pooling2d
  - dense: {name: predictions, units: 3, activation: softmax}
)",
                  "{name: sgd, momentum: 0.9, nesterov: true, weight_decay: 1e-3}",
                  "{name: sparse_categorical_crossentropy, label_smoothing: 0.1}", 0.05};

const Network centralized{"centralized",
                          cnn.model,
                          "{name: sgd, momentum: 0.9, nesterov: true, weight_decay: 1e-3, gradient_centralization: "
                          "true, clipnorm: 0.1}",
                          "sparse_categorical_crossentropy",
                          0.1,
                          0};

const Network limited{"limited",
                      mlp.model,
                      "{name: sgd, momentum: 0.9, nesterov: true, weight_decay: 1e-3, clipvalue: 0.01}",
                      "sparse_categorical_crossentropy",
                      0.05,
                      0};

const Network shared{"shared", R"(
layers:
  - conv2d: {name: stem, filters: 6, kernel_size: 3, padding: same, activation: relu}
  - conv2d: {name: again, filters: 6, kernel_size: 3, padding: same}
  - batch_normalization: {name: bn, momentum: 0.9}
  - activation: relu
  - conv2d: {name: again, filters: 6, kernel_size: 3, padding: same}
  - batch_normalization: {name: bn, momentum: 0.9}
  - activation: relu
  - max_pooling2d: {pool_size: 2}
  - conv2d: {name: again, filters: 6, kernel_size: 3, padding: same}
  - global_average_pooling2d
  - dense: {name: mix, units: 6, activation: tanh}
  - dense: {name: mix, units: 6, activation: tanh}
  - dense: {name: predictions, units: 3, activation: softmax}
)",
                     "{name: sgd, momentum: 0.9, nesterov: true, weight_decay: 1e-3}",
                     "sparse_categorical_crossentropy", 0.05};

// Regularizers and weight decay do not change a frozen kernel.
const Network frozen{"frozen", R"(
freeze: [base, "b?", block]
layers:
  - conv2d:
      {name: base, filters: 6, kernel_size: 3, padding: same, activation: relu, kernel_regularizer: {l2: 0.01}}
  - conv2d: {name: stem, filters: 6, kernel_size: 3, padding: same, use_bias: false}
  - batch_normalization: {name: bn}
  - activation: relu
  - residual:
      name: block
      layers:
        - conv2d: {name: conv, filters: 6, kernel_size: 3, padding: same, use_bias: false}
        - batch_normalization: {name: bn}
      activation: relu
  - batch_normalization: {name: live, momentum: 0.9}
  - global_average_pooling2d
  - dense: {name: predictions, units: 3, activation: softmax}
)",
                     "{name: sgd, momentum: 0.9, nesterov: true, weight_decay: 1e-3}",
                     "sparse_categorical_crossentropy", 0.2};

constexpr std::int64_t batch_size = 12, batches = 5, width = 8 * 8 * 2;

// The samples of a golden file, as batches.
class Samples {
 public:
  Samples(const Golden& golden, const std::string& name) {
    const auto copy = [&](const char* what, auto& to) {
      const std::vector<double> values = golden.at(name + "/" + what).values;
      to.assign(values.begin(), values.end());
    };
    copy("inputs", inputs_);
    copy("targets", targets_);
    copy("weights", weights_);
    numbers_.resize(weights_.size());
    std::iota(numbers_.begin(), numbers_.end(), 0);
  }
  Batch batch(std::int64_t step) {
    const std::int64_t first = step % batches * batch_size;
    Batch batch;
    batch.inputs = {{&inputs_[static_cast<std::size_t>(first * width)], DType::float32, batch_size * width}};
    batch.targets = {{&targets_[static_cast<std::size_t>(first)], DType::int32, batch_size}};
    batch.weights = {&weights_[static_cast<std::size_t>(first)], DType::float32, batch_size};
    batch.samples = {&numbers_[static_cast<std::size_t>(first)], DType::int64, batch_size};
    batch.count = batch_size;
    return batch;
  }

 private:
  std::vector<float> inputs_, weights_;
  std::vector<std::int32_t> targets_;
  std::vector<std::int64_t> numbers_;
};

// Trains and compares losses by their relative errors, and in float32 all tensors at the end by typical deviations.
//
// float32: the tolerance covers the rounding of 30 steps. bfloat16: each activation has an error of up to 2^-9, and
// about ten of them follow one another, so that the first losses agree with PyTorch's to 2^-6. Later steps start from
// weights that earlier steps changed by gradients with a total error of an eighth or more, wherever they are rounded;
// in the middle, where losses fall fastest, they differ by 2^-4 and a little more, at the end by 2^-6 again.
void check_training(const Network& network, DType dtype, int micro_batches) {
  CAPTURE(network.name, name_of(dtype), micro_batches);
  const Golden golden("training.safetensors");
  const std::string name = network.name;
  TestJob job(network.model, network.optimizer, network.loss);
  job.spec.clip_norm = network.clip_norm;
  job.spec.loss_reduction = LossReduction::mean_with_sample_weight;  // as in PyTorch
  job.spec.compute = dtype;
  const auto backend = backend_under_test();
  const auto communicator = solo_communicator(*backend);
  KernelChoices choices;
  Compiled compiled = compile({job.training(batch_size, micro_batches)}, *backend, choices);
  Engine engine(*backend, *communicator, std::move(compiled));
  for (const NamedTensor& tensor : engine.weights()) {
    write_values(golden.at(name + "/before/" + tensor.name), tensor.view.data);
  }
  engine.upload();

  Samples samples(golden, name);
  const std::vector<double> losses = golden.at(name + "/losses").values;
  StepResult result;
  for (std::size_t step = 0; step < losses.size(); ++step) {
    const auto number = static_cast<std::int64_t>(step);
    engine.run(0, samples.batch(number), {network.learning_rate, number, false}, result);
    CAPTURE(step);
    CHECK(result.sums[0] / result.count == Approx(losses[step])
                                               .epsilon(dtype == DType::float32 ? 1e-4
                                                        : step < 5              ? 0x1p-6
                                                                                : 0x1p-3));
  }
  CHECK(losses.back() < 0.7 * losses.front());  // something was learnt
  if (dtype != DType::float32) return;
  engine.download();
  for (const NamedTensor& tensor : engine.weights()) {
    CAPTURE(tensor.name);
    const auto got = read_values({tensor.shape, DType::float32}, tensor.view.data);
    CHECK(deviation(got.values, golden.at(name + "/after/" + tensor.name).values).typical < 1e-3);
  }
}

}  // namespace

TEST_CASE("a perceptron learns as in PyTorch, in whole batches or in micro-batches") {
  for (const int micro_batches : {1, 3}) check_training(mlp, DType::float32, micro_batches);
}

TEST_CASE("a network with penalties on parameters learns as in PyTorch, in whole batches or in micro-batches") {
  for (const int micro_batches : {1, 3}) check_training(penalized, DType::float32, micro_batches);
}

TEST_CASE("a convolutional network with skips and batch normalisation learns as in PyTorch") {
  check_training(cnn, DType::float32, 1);
}

TEST_CASE("gradients are centralized and clipped by parameter, or by element, as in PyTorch") {
  check_training(centralized, DType::float32, 1);
  for (const int micro_batches : {1, 3}) check_training(limited, DType::float32, micro_batches);
}

TEST_CASE("layers that share weights by their name learn as in PyTorch") {
  check_training(shared, DType::float32, 1);
  check_training(shared, DType::bfloat16, 1);
}

TEST_CASE("a network with frozen layers before and between those that train learns as in PyTorch") {
  check_training(frozen, DType::float32, 1);
  check_training(frozen, DType::bfloat16, 1);
}

TEST_CASE("in bfloat16 networks learn as in PyTorch, to its precision") {
  check_training(mlp, DType::bfloat16, 1);
  check_training(cnn, DType::bfloat16, 1);
}

}  // namespace trainctl::test::training_test
