// A network that makes steps of SGD from the weights of a golden file in the format of
// test/golden/keras_spectral_norm.py.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/backend/choices.h"
#include "core/exec/engine.h"
#include "parallel/comm/communicators.h"
#include "test/catch.h"
#include "test/core/ops/golden.h"
#include "test/core/program/job.h"

namespace trainctl::test {

// A network with Keras' weights before its steps, and its batch. `name` is the name of the golden case.
class NetworkSteps {
 public:
  NetworkSteps(const Golden& golden, const std::string& name, const std::string& network, int micro_batches)
      : backend_(backend_under_test()), communicator_(solo_communicator(*backend_)) {
    const Value x = golden.at(name + "/in0"), y = golden.at(name + "/targets");
    TestJob job(network, "sgd", "{name: sparse_categorical_crossentropy, from_logits: true}");
    job.spec.inputs[0].sample = x.type.shape.without_front();
    job.spec.inputs[0].format.dtype = x.type.dtype;
    job.spec.outputs[0].target.classes = 3;
    job.spec.outputs[0].target.shape = y.type.shape.without_front();
    const std::int64_t samples = x.type.shape[0];
    inputs.assign(x.values.begin(), x.values.end());
    tokens_.assign(x.values.begin(), x.values.end());
    targets_.assign(y.values.begin(), y.values.end());
    batch_.inputs = {{inputs.data(), DType::float32, std::ssize(inputs)}};
    if (x.type.dtype == DType::int32) batch_.inputs = {{tokens_.data(), DType::int32, std::ssize(tokens_)}};
    batch_.targets = {{targets_.data(), DType::int32, std::ssize(targets_)}};
    weights_.assign(static_cast<std::size_t>(samples), 1.0f);
    numbers_.assign(static_cast<std::size_t>(samples), 0);
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

  // The weights and the running statistics.
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
  std::vector<float> weights_;
  std::vector<std::int64_t> numbers_;
  Batch batch_;
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<Communicator> communicator_;
  std::unique_ptr<Engine> engine_;
};

// Checks that training gives the golden losses, and the golden weights after it.
inline void check_steps(const Golden& golden, const std::string& name, const std::string& network, int micro_batches) {
  CAPTURE(name, micro_batches);
  const Value losses = golden.at(name + "/losses");
  NetworkSteps steps(golden, name, network, micro_batches);
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

}  // namespace trainctl::test
