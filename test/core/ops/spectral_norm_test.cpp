// Compares the weights and losses of networks with spectral normalization after steps of SGD with Keras' values
// (test/golden/keras_spectral_norm.py).
#include <map>
#include <string>

#include "core/backend/choices.h"
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

}  // namespace

TEST_CASE("networks with spectral normalization make Keras' steps") {
  const Golden golden("keras_spectral_norm.safetensors");
  for (const auto& [name, network] : networks) {
    for (const int micro_batches : {1, 2}) {
      CAPTURE(name, micro_batches);
      const Value x = golden.at(name + "/in0"), y = golden.at(name + "/targets"), losses = golden.at(name + "/losses");
      TestJob job(network, "sgd", "{name: sparse_categorical_crossentropy, from_logits: true}");
      job.spec.inputs[0].sample = x.type.shape.without_front();
      job.spec.inputs[0].format.dtype = x.type.dtype;
      job.spec.outputs[0].target.classes = 3;
      std::vector<float> inputs(x.values.begin(), x.values.end()), weights(samples, 1.0f);
      std::vector<std::int32_t> tokens(x.values.begin(), x.values.end()), targets(y.values.begin(), y.values.end());
      std::vector<std::int64_t> numbers(samples);
      Batch batch;
      batch.inputs = {{inputs.data(), DType::float32, std::ssize(inputs)}};
      if (x.type.dtype == DType::int32) batch.inputs = {{tokens.data(), DType::int32, std::ssize(tokens)}};
      batch.targets = {{targets.data(), DType::int32, samples}};
      batch.weights = {weights.data(), DType::float32, samples};
      batch.samples = {numbers.data(), DType::int64, samples};
      batch.count = samples;

      const Program training = job.training(samples, micro_batches), evaluation = job.evaluation(samples);
      const auto backend = backend_under_test();
      const auto communicator = solo_communicator(*backend);
      KernelChoices choices;
      Engine engine(*backend, *communicator, compile({training, evaluation}, *backend, choices));
      for (const NamedTensor& tensor : engine.weights()) {
        const Value value = golden.at(name + "/before/" + tensor.name);
        REQUIRE(tensor.view.count == value.type.shape.count());
        std::copy(value.values.begin(), value.values.end(), tensor.view.as<float>());
      }
      engine.upload();
      StepResult result;
      const std::size_t steps = losses.values.size() - 1;
      for (std::size_t step = 0; step < steps; ++step) {
        CAPTURE(step);
        engine.run(0, batch, {.learning_rate = 0.1, .step = static_cast<std::int64_t>(step)}, result);
        CHECK(result.sums[0] / result.count == Approx(losses.values[step]).epsilon(1e-5));
      }
      engine.run(1, batch, {}, result);
      CHECK(result.sums[0] / result.count == Approx(losses.values[steps]).epsilon(1e-5));
      engine.download();
      for (const NamedTensor& tensor : engine.weights()) {
        CAPTURE(tensor.name);
        const Value after = golden.at(name + "/after/" + tensor.name);
        const Value got{after.type, {tensor.view.as<float>(), tensor.view.as<float>() + tensor.view.count}};
        CHECK(largest_error(got, after.values) < 1e-5);
      }
    }
  }
}

}  // namespace trainctl::test::spectral_norm_steps_test
