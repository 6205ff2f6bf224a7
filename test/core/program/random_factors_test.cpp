// Compares gaussian_dropout and alpha_dropout, element by element, with Keras' formulas of the numbers that a sample
// draws; and their gradients with finite differences.
#include <cmath>

#include "core/base/format.h"
#include "core/base/random.h"
#include "test/core/program/expression_job.h"
#include "test/core/program/slopes.h"

namespace trainctl::expression_test {
namespace {

constexpr double rate = 0.375;

// The word that element e of a sample draws in the layer.
std::uint32_t word(std::int64_t sample, std::int64_t e) {
  const RandomKey key{5, Purpose::numbers, 0, name_hash("drop/random_1")};
  return key.block(static_cast<std::uint64_t>(sample), static_cast<std::uint32_t>(e / 4))[static_cast<int>(e % 4)];
}

double uniform(std::uint32_t drawn) { return std::ldexp(static_cast<double>(drawn >> 8), -24); }

// The normal quantile of the middle of the numbers that have the word's 24 bits, by bisection.
double normal(std::uint32_t drawn) {
  const double p = uniform(drawn) + std::ldexp(1.0, -25);
  double low = -9, high = 9;
  for (int i = 0; i < 80; ++i) {
    const double middle = (low + high) / 2;
    (0.5 * std::erfc(-middle / std::sqrt(2.0)) < p ? low : high) = middle;
  }
  return low;
}

double gaussian_dropout(double x, std::uint32_t drawn) {
  return x * (1 + std::sqrt(rate / (1 - rate)) * normal(drawn));
}

double alpha_dropout(double x, std::uint32_t drawn) {
  const double limit = -1.6732632423543772 * 1.0507009873554805;
  const double a = 1 / std::sqrt((1 - rate) * (1 + rate * limit * limit)), b = -a * limit * rate;
  return a * (uniform(drawn) >= rate ? x : limit) + b;
}

// The mean difference between the layer's output and `expected`, in micro-batches.
double difference(const std::string& layer, double (*expected)(double, std::uint32_t), int micro_batches) {
  TestJob job = job_of("layers: [{" + layer + ": {name: drop, rate: 0.375}}, {layer_scale: {name: s, init_values: 1}}]",
                       "mean_absolute_error", false);
  job.spec.seed = 5;
  Samples data(false, false);
  std::fill(data.weights.begin(), data.weights.end(), 1.0f);
  for (std::size_t i = 0; i < data.targets.size(); ++i) {
    const auto sample = static_cast<std::int64_t>(i) / width, e = static_cast<std::int64_t>(i) % width;
    data.targets[i] = static_cast<float>(expected(static_cast<double>(data.inputs[i]), word(sample, e)));
  }
  const Program program = job.training(samples, micro_batches);
  const auto backend = make_cpu_backend({});
  const auto communicator = solo_communicator();
  KernelChoices choices;
  Engine engine(*backend, *communicator, compile({program}, *backend, choices));
  for (const NamedTensor& tensor : engine.weights()) {
    std::fill_n(tensor.view.as<float>(), tensor.view.count, 1.0f);
  }
  engine.upload();
  StepResult step;
  engine.run(0, data.batch(), {}, step);
  return program.results[0].of(step.sums, step.count);
}

}  // namespace

TEST_CASE("gaussian_dropout and alpha_dropout have Keras' values of the samples' numbers") {
  for (const int micro_batches : {1, 2, 3}) {
    CHECK(difference("gaussian_dropout", gaussian_dropout, micro_batches) < 2e-6);
    CHECK(difference("alpha_dropout", alpha_dropout, micro_batches) < 2e-6);
  }
}

TEST_CASE("gradients of gaussian_dropout and alpha_dropout are the slopes of the loss") {
  for (const char* layer : {"gaussian_dropout: 0.3", "alpha_dropout: 0.3"}) {
    CAPTURE(layer);
    const TestJob job =
        job_of(format("layers: [{{dense: {{units: 5, activation: tanh}}}}, {{{}}}, {{dense: {{units: 4}}}}]", layer),
               "mean_squared_error", false);
    Samples data(false, false);
    check_slopes(job.training(samples), data.batch(), 1e-2f);
  }
}

}  // namespace trainctl::expression_test
