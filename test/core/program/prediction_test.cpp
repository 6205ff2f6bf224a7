// Tests programs for prediction: they have no loss, optimizer or targets, and the same predictions as evaluation.
#include <algorithm>
#include <cmath>
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

TEST_CASE("documents that are packed into a sample do not see each other in the presets of language models") {
  constexpr std::int64_t vocabulary = 11, first = 5, positions = 8;
  const std::string preset = GENERATE("gpt2", "llama");
  const std::string sizes = "vocabulary: 11, layers: 2, heads: 2, head_size: 4, width: 8, mlp: 16" +
                            std::string(preset == "gpt2" ? ", positions: 8" : ", key_heads: 1");
  CAPTURE(preset);
  const auto logits = [&](std::vector<std::int32_t> tokens, std::vector<std::int32_t> documents) {
    const bool packed = !documents.empty();
    TestJob job((packed ? "{inputs: [tokens, documents], preset: " : "{preset: ") + preset + ", with: {" + sizes +
                    (packed ? ", tokens: tokens, documents: documents}}" : "}}"),
                "sgd", "none", "");
    const auto count = std::ssize(tokens);
    job.spec.inputs.clear();
    Batch batch;
    for (const std::string& name : input_names(job.model)) {
      job.spec.inputs.push_back({name, Shape{count}, {DType::int32, {}, {}}});
      batch.inputs.push_back({(name == "documents" ? documents : tokens).data(), DType::int32, count});
    }
    batch.count = 1;
    return Runner(job.prediction(1)).predictions(batch);
  };
  const std::vector<std::int32_t> tokens{3, 9, 1, 10, 4, 7, 2, 6}, documents{0, 0, 0, 0, 0, 1, 1, 1};
  const std::vector<float> packed = logits(tokens, documents);
  const auto differs = [&](std::int64_t begin, std::int64_t end, const std::vector<float>& other, std::int64_t from) {
    REQUIRE(std::ssize(other) >= (end - begin + from) * vocabulary);
    float difference = 0;
    for (std::int64_t i = 0; i < (end - begin) * vocabulary; ++i) {
      difference = std::max(difference, std::abs(packed[static_cast<std::size_t>(begin * vocabulary + i)] -
                                                 other[static_cast<std::size_t>(from * vocabulary + i)]));
    }
    return difference > 1e-5f;
  };
  const auto split = tokens.begin() + first;
  CHECK_FALSE(differs(0, first, logits({tokens.begin(), split}, {}), 0));
  CHECK(differs(first, positions, logits(tokens, {}), first));
  // The positions of gpt2 are those of the sample, and the rotations of llama those of the document.
  if (preset == "llama") CHECK_FALSE(differs(first, positions, logits({split, tokens.end()}, {}), 0));
  const std::vector<std::int32_t> other{8, 0, 5, 2, 9, 7, 2, 6};
  CHECK_FALSE(differs(first, positions, logits(other, documents), first));
  CHECK(differs(0, first, logits(other, documents), 0));
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
