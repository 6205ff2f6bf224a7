// Tests programs for prediction: they have no loss, optimizer or targets, and the same predictions as evaluation.
#include <algorithm>
#include <cstring>
#include <random>

#include "core/backend/choices.h"
#include "core/backend/cpu/cpu_backend.h"
#include "core/exec/engine.h"
#include "parallel/comm/communicators.h"
#include "test/catch.h"
#include "test/core/program/job.h"

namespace trainctl::prediction_test {
namespace {

constexpr std::int64_t samples = 7, width = 8 * 8 * 2;

// An engine with one program, whose weights are random and depend on their names alone.
class Runner {
 public:
  explicit Runner(const Program& program)
      : backend_(make_cpu_backend({})),
        communicator_(solo_communicator()),
        engine_(*backend_, *communicator_, compile({program}, *backend_, choices_)) {
    for (const NamedTensor& tensor : engine_.weights()) {
      std::mt19937 random(static_cast<unsigned>(std::hash<std::string>{}(tensor.name)));
      std::uniform_real_distribution<float> uniform(0.05f, 0.6f);  // positive, as variances must be
      const float shift = tensor.name.ends_with("variance") ? 0.0f : -0.3f;
      std::generate_n(tensor.view.as<float>(), tensor.view.count, [&] { return uniform(random) + shift; });
    }
    engine_.upload();
  }

  std::vector<float> predictions(const Batch& batch) {
    StepResult result;
    engine_.run(0, batch, {}, result);
    const Program& program = engine_.program(0).program;
    const TensorId id = program.step.predictions[0];
    std::vector<std::byte> bytes;
    engine_.read_tensor(0, id, bytes);
    std::vector<float> values(static_cast<std::size_t>(program.tensor(id).type.shape.count()));
    std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
    return values;
  }
  const MemoryPlan& memory() const { return engine_.memory(); }

 private:
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<Communicator> communicator_;
  KernelChoices choices_;
  Engine engine_;
};

}  // namespace

TEST_CASE("a program without a loss has the same predictions as evaluation") {
  const char* network = GENERATE(
      "layers: [flatten, {dense: {units: 9, activation: relu}}, {dropout: 0.4}, {dense: {units: 3, activation: "
      "softmax}}]",
      "layers: [{conv2d: {filters: 4, kernel_size: 3, use_bias: false}}, batch_normalization, {activation: relu}, "
      "global_average_pooling2d, {dense: {units: 3}}]");
  const DType compute = GENERATE(DType::float32, DType::bfloat16);
  CAPTURE(network, name_of(compute));
  TestJob job(network);
  job.spec.compute = compute;
  std::mt19937 random(5);
  std::normal_distribution<float> normal;
  std::vector<float> inputs(static_cast<std::size_t>(samples * width)), weights(samples, 1.0f);
  std::generate(inputs.begin(), inputs.end(), [&] { return normal(random); });
  std::vector<std::int32_t> targets{0, 2, 1, 1, 0, 2, 1};
  Batch with_targets;
  with_targets.inputs = {{inputs.data(), DType::float32, samples * width}};
  with_targets.targets = {{targets.data(), DType::int32, samples}};
  with_targets.weights = {weights.data(), DType::float32, samples};
  std::vector<std::int64_t> numbers(samples, 3);
  with_targets.samples = {numbers.data(), DType::int64, samples};
  with_targets.count = samples;
  Batch alone;
  alone.inputs = with_targets.inputs;
  alone.count = samples;
  Runner evaluation(job.evaluation(samples));
  job.spec.outputs[0].loss = {};
  job.spec.outputs[0].metrics.clear();
  job.spec.optimizer = {};
  Runner prediction(job.prediction(samples));
  const std::vector<float> predictions = prediction.predictions(alone);
  REQUIRE(predictions.size() == samples * 3);
  CHECK(predictions == evaluation.predictions(with_targets));
  CHECK(*std::max_element(predictions.begin(), predictions.end()) >
        *std::min_element(predictions.begin(), predictions.end()));
  CHECK(prediction.memory().of(Region::gradients) == 0);
  CHECK(prediction.memory().of(Region::states) == 0);
}

TEST_CASE("an output is predicted with its softmax if added losses or layers read it, as if they did not") {
  std::mt19937 random(6);
  std::normal_distribution<float> normal;
  std::vector<float> inputs(static_cast<std::size_t>(samples * width));
  std::generate(inputs.begin(), inputs.end(), [&] { return normal(random); });
  Batch batch;
  batch.inputs = {{inputs.data(), DType::float32, samples * width}};
  batch.count = samples;
  const auto predicted = [&](const std::string& rest) {
    TestJob job("{layers: [flatten, {dense: {name: last, units: 3, activation: softmax}}" + rest + "}", "sgd", "none",
                "");
    job.spec.outputs.clear();
    for (const std::string& name : output_names(job.model)) job.spec.outputs.emplace_back().name = name;
    return Runner(job.prediction(samples)).predictions(batch);
  };
  const std::vector<float> expected = predicted("]");
  float sum = 0;
  for (std::size_t k = 0; k < 3; ++k) sum += expected[k];
  CHECK(sum == Approx(1));
  CHECK(predicted("], add_loss: {sure: {from: last, expression: '-log(x[:, 0])'}}") == expected);
  CHECK(predicted(", {dense: {name: further, units: 2}}], outputs: [last, further]") == expected);
}

TEST_CASE("a prediction program of a rank without samples does nothing") {
  const Program program = TestJob("layers: [flatten, {dense: 3}]").prediction(0);
  CHECK(program.segments.size() == 1);
  CHECK(program.segments[0].ops.empty());
  CHECK(program.step.predictions.empty());
}

}  // namespace trainctl::prediction_test
