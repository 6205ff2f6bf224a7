// Tests programs of networks with several inputs and outputs.
#include <random>

#include "core/metrics/choices.h"
#include "test/catch.h"
#include "test/core/program/job.h"
#include "test/core/program/slopes.h"

namespace trainctl::outputs_test {
namespace {

// The inputs are an image and a table; the outputs are a class, two values, and a layer that other layers read, too.
constexpr const char* network = R"(
inputs: [image, table]
outputs: [kind, size, trunk]
layers:
  - conv2d: {from: image, filters: 4, kernel_size: 3, activation: tanh}
  - flatten: {name: pixels}
  - dense: {name: numbers, from: table, units: 5, activation: tanh}
  - concatenate: {from: [pixels, numbers]}
  - dense: {name: trunk, units: 6, activation: tanh}
  - dense: {name: kind, units: 3, activation: softmax}
  - dense: {name: size, from: trunk, units: 2}
)";

struct Two : TestJob {
  Two() : TestJob(network, "sgd") {
    spec.inputs = {{"image", {6, 6, 2}, {}}, {"table", {4}, {}}};
    ProgramSpec::Output kind = spec.outputs[0];
    kind.name = "kind";
    kind.weight = 0.5;
    kind.target.classes = 3;
    spec.outputs = {kind, output("size", "mean_squared_error", 2, {2}), output("trunk", "huber", 0.25, {6})};
  }

  static ProgramSpec::Output output(const std::string& name, const std::string& loss, double weight, Shape values) {
    Reader reader;
    ProgramSpec::Output output;
    output.name = name;
    output.weight = weight;
    output.target.shape = std::move(values);
    read_choice(loss_choices(), parse_yaml(loss, "", ".", reader), reader, output.loss);
    read_choices(metric_choices(), parse_yaml("[mean_absolute_error]", "", ".", reader), reader, output.metrics);
    reader.throw_if_failed();
    return output;
  }
};

// Random samples for the network.
struct Samples {
  static constexpr std::int64_t count = 6;
  std::vector<float> image, table, size, trunk, weights;
  std::vector<std::int32_t> kind;
  std::vector<std::int64_t> numbers;

  Samples() {
    std::mt19937 random(4);
    std::normal_distribution<float> normal;
    const auto fill = [&](std::vector<float>& values, std::int64_t each) {
      for (std::int64_t i = 0; i < count * each; ++i) values.push_back(normal(random));
    };
    fill(image, 72), fill(table, 4), fill(size, 2), fill(trunk, 6);
    for (std::int64_t i = 0; i < count; ++i) {
      kind.push_back(static_cast<std::int32_t>(random() % 3));
      weights.push_back(0.5f * static_cast<float>(i % 3));
      numbers.push_back(i);
    }
  }
  Batch batch() {
    Batch batch;
    batch.inputs = {{image.data(), DType::float32, std::ssize(image)},
                    {table.data(), DType::float32, std::ssize(table)}};
    batch.targets = {{kind.data(), DType::int32, count},
                     {size.data(), DType::float32, std::ssize(size)},
                     {trunk.data(), DType::float32, std::ssize(trunk)}};
    batch.weights = {weights.data(), DType::float32, count};
    batch.samples = {numbers.data(), DType::int64, count};
    batch.count = count;
    return batch;
  }
};

}  // namespace

TEST_CASE("gradients of several outputs are the slopes of the weighted sum of their losses") {
  const Two job;
  Samples samples;
  check_slopes(job.training(Samples::count), samples.batch(), 4e-3f);
  check_slopes(job.training(Samples::count, 3), samples.batch(), 4e-3f);
}

TEST_CASE("outputs that are one tensor add their gradients") {
  TestJob job(R"(outputs: [scores, kind]
layers:
  - dense: {units: 5, activation: tanh}
  - dense: {name: scores, units: 3}
  - activation: {name: kind, activation: softmax}
)",
              "sgd");
  job.spec.inputs[0].sample = {4};
  ProgramSpec::Output kind = job.spec.outputs[0];
  kind.name = "kind";
  kind.target.classes = 3;
  job.spec.outputs = {Two::output("scores", "mean_squared_error", 0.5, {3}), kind};
  Samples samples;
  Batch batch = samples.batch();
  batch.inputs = {{samples.table.data(), DType::float32, std::ssize(samples.table)}};
  batch.targets = {{samples.trunk.data(), DType::float32, 3 * Samples::count}, {samples.kind.data(), DType::int32, 6}};
  check_slopes(job.training(Samples::count), batch, 4e-3f);
}

TEST_CASE("several outputs report the total loss, the loss of each, and their metrics by name") {
  const Two job;
  Samples samples;
  const Program program = job.evaluation(Samples::count);
  std::vector<std::string> names;
  for (const MetricResult& result : program.results) names.push_back(result.name);
  CHECK(names == std::vector<std::string>{"loss", "kind_loss", "size_loss", "trunk_loss", "kind_accuracy",
                                          "size_mean_absolute_error", "trunk_mean_absolute_error"});
  const auto backend = make_cpu_backend({});
  const auto communicator = solo_communicator();
  KernelChoices choices;
  Engine engine(*backend, *communicator, compile({program}, *backend, choices));
  std::mt19937 random(5);
  draw_weights(engine, random);
  engine.upload();
  StepResult result;
  engine.run(0, samples.batch(), {}, result);
  const auto value = [&](std::size_t number) { return program.results[number].of(result.sums, result.count); };
  CHECK(result.count == 6);
  CHECK(result.sums.back() == 3);  // weights 0, 1/2 and 1, twice
  CHECK(value(0) == Approx(0.5 * value(1) + 2 * value(2) + 0.25 * value(3)));

  // The second output's loss and metric, computed from its predictions.
  std::vector<std::byte> bytes;
  engine.read_tensor(0, program.step.predictions[1], bytes);
  const auto* predicted = reinterpret_cast<const float*>(bytes.data());
  double squares = 0, distances = 0;
  for (std::size_t i = 0; i < samples.size.size(); ++i) {
    const double error = double{predicted[i]} - samples.size[i];
    squares += samples.weights[i / 2] * error * error / 2;
    distances += samples.weights[i / 2] * std::abs(error) / 2;
  }
  CHECK(value(2) == Approx(squares / 6).epsilon(1e-5));
  CHECK(value(5) == Approx(distances / 3).epsilon(1e-5));
}

TEST_CASE("a program of several outputs predicts them all") {
  const Two job;
  const Program program = job.prediction(4);
  REQUIRE(program.step.predictions.size() == 3);
  CHECK(program.tensor(program.step.predictions[0]).type == TensorType{{4, 3}, DType::float32});
  CHECK(program.tensor(program.step.predictions[1]).type == TensorType{{4, 2}, DType::float32});
  CHECK(program.tensor(program.step.predictions[2]).type == TensorType{{4, 6}, DType::float32});
  CHECK(program.batch.inputs.size() == 2);
  CHECK(program.batch.targets.empty());
}

}  // namespace trainctl::outputs_test
