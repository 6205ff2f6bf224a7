// Compares the weights and losses of networks with spectral normalization after steps of SGD with Keras' values
// (test/golden/keras_spectral_norm.py), and tests steps that are skipped.
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/backend/choices.h"
#include "core/base/format.h"
#include "core/exec/engine.h"
#include "parallel/comm/communicators.h"
#include "test/catch.h"
#include "test/core/ops/golden.h"
#include "test/core/program/job.h"

namespace trainctl::test::spectral_norm_steps_test {
namespace {

constexpr std::int64_t samples = 8;

const std::map<std::string, std::string> networks{
    {"dense",
     "layers: [{spectral_normalization: {name: a, layers: [{dense: {units: 4, activation: tanh}}]}}, "
     "{spectral_normalization: {name: b, power_iterations: 3, layers: [{dense: 3}]}}]"},
    {"convolutions",
     "layers: [{spectral_normalization: {name: a, layers: [{conv2d: {filters: 3, kernel_size: [3, 2], activation: "
     "tanh, "
     "use_bias: false}}]}}, {spectral_normalization: {name: b, power_iterations: 2, layers: [{conv2d_transpose: "
     "{filters: 4, kernel_size: 2, strides: 2}}]}}, global_average_pooling2d, {dense: {name: c, units: 3}}]"},
    {"embedding",
     "layers: [{spectral_normalization: {name: a, layers: [{embedding: {input_dim: 6, output_dim: 5}}]}}, flatten, "
     "{dense: {name: b, units: 3}}]"}};

// A network with Keras' weights before its steps, and its batch.
class Steps {
 public:
  Steps(const Golden& golden, const std::string& name, int micro_batches)
      : backend_(backend_under_test()), communicator_(solo_communicator(*backend_)) {
    const Value x = golden.at(name + "/in0"), y = golden.at(name + "/targets");
    TestJob job(networks.at(name), "sgd", "{name: sparse_categorical_crossentropy, from_logits: true}");
    job.spec.inputs[0].sample = x.type.shape.without_front();
    job.spec.inputs[0].format.dtype = x.type.dtype;
    job.spec.outputs[0].target.classes = 3;
    inputs.assign(x.values.begin(), x.values.end());
    tokens_.assign(x.values.begin(), x.values.end());
    targets_.assign(y.values.begin(), y.values.end());
    batch_.inputs = {{inputs.data(), DType::float32, std::ssize(inputs)}};
    if (x.type.dtype == DType::int32) batch_.inputs = {{tokens_.data(), DType::int32, std::ssize(tokens_)}};
    batch_.targets = {{targets_.data(), DType::int32, samples}};
    batch_.weights = {weights_.data(), DType::float32, samples};
    batch_.samples = {numbers_.data(), DType::int64, samples};
    batch_.count = samples;
    KernelChoices choices;
    const Program training = job.training(samples, micro_batches), evaluation = job.evaluation(samples);
    engine_ = std::make_unique<Engine>(*backend_, *communicator_, compile({training, evaluation}, *backend_, choices));
    for (const NamedTensor& tensor : engine_->weights()) {
      const Value value = golden.at(name + "/before/" + tensor.name);
      REQUIRE(tensor.view.count == value.type.shape.count());
      std::copy(value.values.begin(), value.values.end(), tensor.view.as<float>());
    }
    engine_->upload();
  }

  // The mean loss of a step, or without a step number of an evaluation.
  double loss(std::optional<std::int64_t> step) {
    StepResult result;
    engine_->run(step ? 0 : 1, batch_, {.learning_rate = 0.1, .step = step.value_or(0)}, result);
    return result.sums[0] / result.count;
  }

  std::map<std::string, std::vector<float>> weights() {
    engine_->download();
    std::map<std::string, std::vector<float>> values;
    for (const NamedTensor& tensor : engine_->weights()) {
      const float* const first = tensor.view.as<float>();
      values[tensor.name] = {first, first + tensor.view.count};
    }
    return values;
  }

  std::vector<float> inputs;  // of the batch, unless they are tokens

 private:
  std::vector<std::int32_t> tokens_, targets_;
  std::vector<float> weights_ = std::vector<float>(samples, 1.0f);
  std::vector<std::int64_t> numbers_ = std::vector<std::int64_t>(samples);
  Batch batch_;
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<Communicator> communicator_;
  std::unique_ptr<Engine> engine_;
};

}  // namespace

TEST_CASE("networks with spectral normalization make Keras' steps") {
  const Golden golden("keras_spectral_norm.safetensors");
  for (const auto& [name, network] : networks) {
    for (const int micro_batches : {1, 2}) {
      CAPTURE(name, micro_batches);
      const Value losses = golden.at(name + "/losses");
      Steps steps(golden, name, micro_batches);
      const std::size_t count = losses.values.size() - 1;
      for (std::size_t step = 0; step < count; ++step) {
        CAPTURE(step);
        CHECK(steps.loss(static_cast<std::int64_t>(step)) == Approx(losses.values[step]).epsilon(1e-5));
      }
      CHECK(steps.loss({}) == Approx(losses.values[count]).epsilon(1e-5));
      for (const auto& [tensor, values] : steps.weights()) {
        CAPTURE(tensor);
        const Value after = golden.at(name + "/after/" + tensor);
        const Value got{after.type, {values.begin(), values.end()}};
        CHECK(largest_error(got, after.values) < 1e-5);
      }
    }
  }
}

TEST_CASE("a step that is not finite does not change kernels with spectral normalization and their vectors") {
  const Golden golden("keras_spectral_norm.safetensors");
  for (const char* name : {"dense", "convolutions"}) {
    for (const int micro_batches : {1, 2}) {
      CAPTURE(name, micro_batches);
      const Value losses = golden.at(format("{}/losses", name));
      Steps steps(golden, name, micro_batches);
      CHECK(steps.loss(0) == Approx(losses.values[0]).epsilon(1e-5));
      const auto before = steps.weights();
      const double evaluated = steps.loss({});
      const float value = std::exchange(steps.inputs[1], std::numeric_limits<float>::quiet_NaN());
      CHECK(std::isnan(steps.loss(1)));
      CHECK(steps.weights() == before);
      steps.inputs[1] = value;
      CHECK(steps.loss({}) == evaluated);
      CHECK(steps.loss(1) == Approx(losses.values[1]).epsilon(1e-5));
      CHECK(steps.weights().at("a/vector_u") != before.at("a/vector_u"));
    }
  }
}

}  // namespace trainctl::test::spectral_norm_steps_test
