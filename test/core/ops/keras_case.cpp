// Compares losses, metrics and gradients of networks with golden values.
#include "test/core/ops/keras_case.h"

#include <cstring>
#include <utility>

#include "core/backend/choices.h"
#include "core/exec/engine.h"
#include "parallel/comm/communicators.h"
#include "test/catch.h"
#include "test/core/backend/run_op.h"
#include "test/core/program/job.h"

namespace trainctl::test {
namespace {

// A batch of a golden case, which owns its numbers.
struct GoldenBatch {
  std::vector<float> values, weights;
  std::vector<std::int32_t> tokens, targets;
  std::vector<std::int64_t> numbers;
  Batch batch;

  GoldenBatch(const Value& in, const Value& target, const std::vector<double>& weight)
      : values(in.values.begin(), in.values.end()),
        weights(weight.begin(), weight.end()),
        tokens(in.values.begin(), in.values.end()),
        targets(target.values.begin(), target.values.end()) {
    for (std::int64_t i = 0; i < in.type.shape[0]; ++i) numbers.push_back(i);
    batch.inputs = {{values.data(), DType::float32, std::ssize(values)}};
    if (in.type.dtype == DType::int32) batch.inputs = {{tokens.data(), DType::int32, std::ssize(tokens)}};
    batch.targets = {{targets.data(), DType::int32, std::ssize(targets)}};
    batch.weights = {weights.data(), DType::float32, std::ssize(weights)};
    batch.samples = {numbers.data(), DType::int64, std::ssize(numbers)};
    batch.count = std::ssize(numbers);
  }
};

void check_case(const Golden& golden, const KerasCase& which, int micro_batches) {
  const std::string name = which.name;
  CAPTURE(name, micro_batches);
  const Value in = golden.at(name + "/in0"), targets = golden.at(name + "/targets");
  TestJob job(which.model, "sgd", which.loss);
  job.spec.inputs[0].sample = in.type.shape.without_front();
  job.spec.inputs[0].format.dtype = in.type.dtype;
  job.spec.outputs[0].target.classes = 3;
  job.spec.outputs[0].target.shape = targets.type.shape.without_front();
  std::vector<double> weights(4, 1.0);
  if (golden.has(name + "/weights")) {
    weights = golden.at(name + "/weights").values;
    job.spec.weight = targets.type.shape.without_front();
  }
  const GoldenBatch data(in, targets, weights);
  const Program program = job.training(4, micro_batches);
  const auto backend = backend_under_test();
  const auto communicator = solo_communicator(*backend);
  KernelChoices choices;
  Engine engine(*backend, *communicator, compile({program}, *backend, choices));
  for (const NamedTensor& tensor : engine.weights()) {
    const Value value = golden.at(name + "/value/" + tensor.name);
    REQUIRE(tensor.view.count == value.type.shape.count());
    std::copy(value.values.begin(), value.values.end(), tensor.view.as<float>());
  }
  engine.upload();
  StepResult result;
  engine.run(0, data.batch, {}, result);
  CHECK(program.results[0].of(result.sums, result.count) == Approx(golden.at(name + "/loss").values[0]).epsilon(2e-5));
  CHECK(program.results[1].of(result.sums, result.count) == Approx(golden.at(name + "/accuracy").values[0]));
  std::vector<std::byte> bytes;
  engine.read_tensor(0, program.step.gradients, bytes);
  std::vector<float> gradients(bytes.size() / sizeof(float));
  std::memcpy(gradients.data(), bytes.data(), bytes.size());
  for (const FlatEntry& entry : program.flat.parameters) {
    const std::string& parameter = program.tensor(entry.parameter).name;
    CAPTURE(parameter);
    const Value expected = golden.at(name + "/gradient/" + parameter);
    double largest = 0, scale = 1;
    for (std::int64_t i = 0; i < entry.count; ++i) {
      const double got = gradients[static_cast<std::size_t>(entry.offset + i)] / result.count;
      const double right = expected.values[static_cast<std::size_t>(i)];
      largest = std::max(largest, std::abs(got - right));
      scale = std::max(scale, std::abs(right));
    }
    CHECK(largest < 3e-5 * scale);  // sums of float32 on a GPU
  }
}

}  // namespace

void check_model(const Golden& golden, const KerasCase& which) {
  for (const int micro_batches : {1, 2}) check_case(golden, which, micro_batches);
}

void check_layers(const Golden& golden, const KerasCase& which) {
  check_model(golden, {which.name, "layers: [" + which.model + "]", which.loss});
}

}  // namespace trainctl::test
