// Compares added losses with values in float64, and their gradients with slopes.
#include <cmath>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "core/tensor/sample_numbers.h"
#include "test/catch.h"
#include "test/core/program/job.h"
#include "test/core/program/slopes.h"

namespace trainctl::added_loss_test {
namespace {

constexpr std::int64_t samples = 6, width = 4;

const std::string layers =
    "layers: [{dense: {name: mean, units: 3}}, {dense: {name: spread, from: input, units: 3}}, "
    "{lambda: {from: [mean, spread], inputs: [m, v], expression: m * exp(v)}}, {dense: 4}]";
const std::string kl =
    "{from: [mean, spread], inputs: [m, v], expression: '-0.5 * sum(1 + v - square(m) - exp(v), axis=-1)', weight: "
    "0.25}";

TestJob job_of(const std::string& added, const std::string& network = layers, const std::string& loss = "mse") {
  TestJob job("{" + network + ", add_loss: " + added + "}", "sgd", loss, "mean_absolute_error");
  job.spec.inputs[0].sample = job.spec.outputs[0].target.shape = {width};
  return job;
}

// Random samples. Sample 2 has weight 0, and sample 4 is missing.
struct Samples {
  std::vector<float> inputs, targets, weights;
  std::vector<std::int64_t> numbers;

  Samples() {
    std::mt19937 random(7);
    std::normal_distribution<float> normal;
    for (std::int64_t i = 0; i < samples; ++i) {
      for (std::int64_t k = 0; k < width; ++k) {
        inputs.push_back(i == 4 ? 0.0f : normal(random));
        targets.push_back(i == 4 ? 0.0f : normal(random));
      }
      weights.push_back(i == 2 || i == 4 ? 0.0f : 0.5f + 0.25f * static_cast<float>(i));
      numbers.push_back(i == 4 ? no_sample : i);
    }
  }
  Batch batch() {
    Batch batch;
    batch.inputs = {{inputs.data(), DType::float32, std::ssize(inputs)}};
    batch.targets = {{targets.data(), DType::float32, std::ssize(targets)}};
    batch.weights = {weights.data(), DType::float32, std::ssize(weights)};
    batch.samples = {numbers.data(), DType::int64, samples};
    batch.count = samples;
    return batch;
  }
};

struct Results {
  std::map<std::string, double> values;  // by the names of the results
  std::map<std::string, std::vector<float>> weights;
};

Results run(const Program& program, Samples& data) {
  const auto backend = make_cpu_backend({});
  const auto communicator = solo_communicator();
  KernelChoices choices;
  Engine engine(*backend, *communicator, compile({program}, *backend, choices));
  std::mt19937 random(22);
  draw_weights(engine, random);
  engine.upload();
  StepResult result;
  engine.run(0, data.batch(), {}, result);
  Results results;
  for (const MetricResult& of : program.results) results.values[of.name] = of.of(result.sums, result.count);
  for (const NamedTensor& tensor : engine.weights()) {
    results.weights[tensor.name].assign(tensor.view.as<float>(), tensor.view.as<float>() + tensor.view.count);
  }
  return results;
}

// The value of unit `unit` of a dense layer for a sample.
double dense(const Results& results, const std::string& layer, const Samples& data, std::int64_t sample, int unit) {
  const std::vector<float>&kernel = results.weights.at(layer + "/kernel"), &bias = results.weights.at(layer + "/bias");
  double sum = bias[static_cast<std::size_t>(unit)];
  for (std::int64_t k = 0; k < width; ++k) {
    sum += double{data.inputs[static_cast<std::size_t>(sample * width + k)]} *
           kernel[static_cast<std::size_t>(k) * bias.size() + static_cast<std::size_t>(unit)];
  }
  return sum;
}

std::string error_of(const std::string& added, const std::string& network = layers, const std::string& loss = "mse") {
  try {
    static_cast<void>(job_of(added, network, loss).training(samples));
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("an added loss is the mean over all samples, and adds to the loss of the output", "[add_loss]") {
  Samples data;
  for (const bool by_weight : {false, true}) {
    CAPTURE(by_weight);
    TestJob job = job_of("{kl: " + kl + "}");
    TestJob without = job_of("{}");
    if (by_weight) job.spec.loss_reduction = without.spec.loss_reduction = LossReduction::mean_with_sample_weight;
    const Results results = run(job.evaluation(samples), data), alone = run(without.evaluation(samples), data);
    double sum = 0, count = 0;
    for (std::int64_t i = 0; i < samples; ++i) {
      const double weight = by_weight ? data.weights[static_cast<std::size_t>(i)] : i == 4 ? 0 : 1;
      count += weight;
      for (int unit = 0; unit < 3; ++unit) {
        const double m = dense(results, "mean", data, i, unit), v = dense(results, "spread", data, i, unit);
        sum += -0.5 * weight * (1 + v - m * m - std::exp(v));
      }
    }
    CHECK(results.values.at("kl_loss") == Approx(sum / count));
    CHECK(results.values.at("output_loss") == Approx(alone.values.at("loss")));
    CHECK(results.values.at("loss") == Approx(alone.values.at("loss") + 0.25 * sum / count));
    CHECK(results.values.at("mean_absolute_error") == Approx(alone.values.at("mean_absolute_error")));
    for (const int micro_batches : {1, 3}) {
      const Results training = run(job.training(samples, micro_batches), data);
      CHECK(training.values.at("kl_loss") == Approx(sum / count));
    }
  }
}

TEST_CASE("gradients of added losses are the slopes of the loss", "[add_loss]") {
  Samples data;
  for (const std::string& added :
       {std::string("{kl: " + kl + "}"), "{kl: " + kl + ", activity: {from: input, inputs: x, expression: mean(x)}}",
        std::string("{activity: {from: mean, expression: '0.3 * mean(square(x)) + mean(abs(x), axis=1)'}}")}) {
    for (const int micro_batches : {1, 2}) {
      CAPTURE(added, micro_batches);
      check_slopes(job_of(added).training(samples, micro_batches), data.batch(), 4e-3f);
    }
  }
}

TEST_CASE("the samples of a loss over the whole batch may depend on each other", "[add_loss]") {
  Samples data;
  const TestJob job = job_of(
      "{pairs: {from: mean, whole_batch: true, expression: 'mean(abs(x[:, None] - x[None, :]), axis=(1, 2))'}, "
      "largest: {from: mean, whole_batch: true, expression: 'max(x)'}}");
  const Results results = run(job.evaluation(samples), data);
  double sum = 0, largest = -1e9;
  for (std::int64_t i = 0; i < samples; ++i) {
    for (int unit = 0; unit < 3; ++unit) {
      largest = std::max(largest, dense(results, "mean", data, i, unit));
      for (std::int64_t other = 0; other < samples && i != 4; ++other) {
        sum += std::abs(dense(results, "mean", data, i, unit) - dense(results, "mean", data, other, unit));
      }
    }
  }
  CHECK(results.values.at("pairs_loss") == Approx(sum / (3 * samples) / (samples - 1)));
  CHECK(results.values.at("largest_loss") == Approx(largest));
  check_slopes(job.training(samples), data.batch(), 4e-3f);
  const TestJob products = job_of(
      "{pairs: {from: [mean, spread], inputs: [a, b], whole_batch: true, expression: "
      "'logsumexp(a @ transpose(b), axis=-1) - sum(a * b, axis=-1) + mean(einsum(\"ik,jk->ij\", a, a), axis=0)'}}");
  check_slopes(products.training(samples), data.batch(), 4e-3f);
}

TEST_CASE("a missing sample changes no gradient, although the expression is not finite for its zeros", "[add_loss]") {
  Samples data;
  const TestJob job =
      job_of("{far: {from: [input, mean], inputs: [x, m], expression: 'mean(0.01 * m / square(x[:, :3]))'}}");
  check_slopes(job.training(samples), data.batch(), 4e-3f);
}

TEST_CASE("mistakes in added losses are reported", "[add_loss]") {
  const std::pair<std::string, std::string> cases[] = {
      {"{kl: {from: men, expression: mean(x)}}", "add_loss: there is no layer 'men'; did you mean 'mean'"},
      {"{kl: {from: [mean, spread], expression: mean(x)}}", "`inputs` must name the 2 inputs of the expression"},
      {"{kl: {from: mean, expression: mean(x + y)}}", "column 10 of the expression: 'y' is unknown"},
      {"{kl: {from: [mean, spread], inputs: [m, v], expression: mean(m)}}", "the expression does not use 'v'"},
      {"{val_kl: {from: mean, expression: mean(x)}}", "does not begin with 'val'"},
      {"{kl: {from: mean, expression: '1 + 1'}}", "the expression does not use 'x'"},
      {"{output: {from: mean, expression: mean(x)}}", "is not 'output'"},
      {"{a b: {from: mean, expression: mean(x)}}", "a name consists of letters"},
      {"{kl: {expression: mean(x)}}", "from"},
  };
  for (const auto& [added, message] : cases) {
    CAPTURE(added, error_of(added));
    CHECK(error_of(added).find(message) != std::string::npos);
  }
  const std::string ends_in_softmax = "layers: [{dense: {name: last, units: 4, activation: softmax}}]";
  CHECK(error_of("{sure: {from: last, expression: mean(x)}}", ends_in_softmax, "categorical_crossentropy")
            .find("the loss takes over the activation at the end of 'last'") != std::string::npos);
}

}  // namespace trainctl::added_loss_test
