// Compares metrics that are expressions with the same metrics of the library, and with values computed in float64.
#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "test/catch.h"
#include "test/core/program/expression_job.h"
#include "test/core/program/slopes.h"

namespace trainctl::expression_metric_test {
namespace {

using namespace expression_test;

const std::string answers = "layers: [{dense: {units: 5, activation: tanh}}, {dense: {units: 4, activation: sigmoid}}]";
const std::string masked = "layers: [{masking: {}}, {dense: {units: 4, use_bias: false}}]";
const std::string largest = "(y_pred == max(y_pred, axis=-1, keepdims=True))";

struct Twin {
  std::string expression, metric, loss, network;
};

std::string named(const std::string& expression) { return "{name: own, expression: '" + expression + "'}"; }

// Requires that the last two results are the same.
void compare_last(const ProgramRun& run) {
  REQUIRE(run.values.size() == 3);
  CHECK(run.values[1] > 0);
  CHECK(run.values[2] == Approx(run.values[1]));
}

void compare(const TestJob& job, const Batch& batch) {
  CHECK(job.evaluation(samples).results.back().name == "own");
  for (const int micro_batches : {1, 3}) compare_last(run_program(job.training(samples, micro_batches), batch));
  compare_last(run_program(job.evaluation(samples), batch));
}

// Sets the inputs of positions to 0, so that the layer masking hides them: one, two or none of each sample.
void hide_positions(Samples& data) {
  for (std::int64_t i = 0; i < samples * positions; ++i) {
    if (i % positions > i / positions % positions) std::fill_n(data.inputs.begin() + i * width, width, 0.0f);
  }
}

std::string error_of(const std::string& metrics, const std::string& loss = "mean_squared_error") {
  try {
    static_cast<void>(job_of(by_sample, loss, false, false, metrics).training(samples));
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a metric that is an expression is the same as the metric of the library", "[expression]") {
  const std::vector<Twin> twins = {
      {"mean(abs(y_true - y_pred))", "mean_absolute_error", "mean_squared_error", by_sample},
      {"mean(square(y_true - y_pred), axis=-1)", "mean_squared_error", "{expression: mean(abs(y_true - y_pred))}",
       by_sample},
      {"mean((y_pred > 0.5) == (y_true > 0.5))", "accuracy", "binary_crossentropy", answers},
      {"mean(abs(y_true - y_pred))", "mean_absolute_error", "binary_crossentropy", answers},
      {"sum((y_true == max(y_true, axis=-1, keepdims=True)) * " + largest + ", axis=-1)", "accuracy",
       "categorical_crossentropy", probabilities},
  };
  for (const Twin& twin : twins) {
    for (const DType compute : {DType::float32, DType::bfloat16}) {
      for (const bool has_positions : {false, true}) {
        for (const bool weighs_positions : {false, true}) {
          if (weighs_positions && !has_positions) continue;
          CAPTURE(twin.expression, name_of(compute), has_positions, weighs_positions);
          Samples data(has_positions, weighs_positions);
          TestJob job = job_of(twin.network, twin.loss, has_positions, weighs_positions,
                               twin.metric + ", " + named(twin.expression));
          job.spec.compute = compute;
          compare(job, data.batch());
        }
      }
    }
  }
}

TEST_CASE("y_true is one-hot in metrics if the targets are class numbers", "[expression]") {
  for (const bool has_positions : {false, true}) {
    for (const std::string loss :
         {"sparse_categorical_crossentropy", "{name: sparse_categorical_crossentropy, ignore_index: -100}"}) {
      CAPTURE(has_positions, loss);
      Samples data(has_positions, false);
      TestJob job = job_of(probabilities, loss, has_positions, false,
                           "accuracy, " + named("sum(y_true * " + largest + ", axis=-1)"));
      job.spec.outputs[0].target = {.classes = width, .shape = has_positions ? Shape{positions} : Shape{}};
      if (loss.front() == '{') data.classes[1] = -100;
      compare(job, data.batch_of_classes());
    }
  }
}

TEST_CASE("metric expressions are means over what masks and weights leave", "[expression]") {
  Samples data(true, false);
  hide_positions(data);
  // The targets of sample 2, whose weight is 0, are 0.
  const TestJob job = job_of(masked, "mean_squared_error", true, false,
                             "{name: own, expression: 'mean(abs(y_true - y_pred) <= tolerance) - 0.5 * mean(y_pred / "
                             "y_true)', tolerance: 0.5}");
  std::mt19937 random(22);  // of draw_weights()
  std::normal_distribution<float> normal;
  std::vector<double> kernel(width * width);
  for (double& value : kernel) value = 0.3f * normal(random);
  double sum = 0, weights = 0;
  for (std::int64_t row = 0; row < samples * positions; ++row) {
    const double weight = data.weights[static_cast<std::size_t>(row / positions)];
    const float* x = data.inputs.data() + row * width;
    if (weight == 0 || std::all_of(x, x + width, [](float value) { return value == 0; })) continue;
    double value = 0;
    for (std::int64_t k = 0; k < width; ++k) {
      double y = 0;
      for (std::int64_t i = 0; i < width; ++i) y += x[i] * kernel[static_cast<std::size_t>(i * width + k)];
      const double target = data.targets[static_cast<std::size_t>(row * width + k)];
      value += ((std::abs(target - y) <= 0.5 ? 1 : 0) - 0.5 * y / target) / width;
    }
    sum += weight * value;
    weights += weight;
  }
  for (const int micro_batches : {1, 2}) {
    CHECK(run_program(job.training(samples, micro_batches), data.batch()).values[1] == Approx(sum / weights));
  }
  CHECK(run_program(job.evaluation(samples), data.batch()).values[1] == Approx(sum / weights));
}

TEST_CASE("metrics that are expressions leave the gradients as they are", "[expression]") {
  Samples data(true, true);
  const auto gradients = [&](const std::string& metrics) {
    const Program program = job_of(by_sample, "mean_squared_error", true, true, metrics).training(samples, 2);
    std::vector<float> values = run_program(program, data.batch()).gradients;
    std::size_t count = 0;  // of the parameters, which are before the sums of losses and metrics
    for (const FlatEntry& entry : program.flat.parameters) count += static_cast<std::size_t>(entry.count);
    values.resize(count);
    return values;
  };
  CHECK(gradients("mean_absolute_error, " + named("mean(y_pred)")) == gradients("mean_absolute_error"));
}

TEST_CASE("mistakes in metric expressions are reported", "[expression]") {
  const std::pair<std::string, const char*> cases[] = {
      {named("mean(sqare(y_pred))"), "column 6 of the expression: there is no function 'sqare'"},
      {named("mean(y_pred - y_tru)"), "column 15 of the expression: 'y_tru' is unknown"},
      {named("sqrt(mean(y_pred))"), "axis is missing"},
      {named("mean(y_true)"), "does not use y_pred"},
      {"{name: own, expression: mean(y_pred), margin: 1}", "does not use 'margin'"},
      {"{expression: mean(y_pred)}", "expression needs 'name'"},
      {"{name: loss, expression: mean(y_pred)}", "'loss' is the name of another result"},
      {"{name: mae, expression: mean(y_pred)}", "'mae' is the name of another result"},
      {"{name: val_own, expression: mean(y_pred)}", "leave val_ out"},
      {"{name: a b, expression: mean(y_pred)}", "'a b' is no name of a metric"},
      {"{name: own, expression: mean(y_pred), mode: upwards}", "mode"},
      {named("mean(y_pred)") + ", " + named("mean(abs(y_pred))"), "metric own is given twice"},
  };
  for (const auto& [metrics, message] : cases) {
    CAPTURE(metrics, error_of(metrics));
    CHECK(error_of(metrics).find(message) != std::string::npos);
  }
  CHECK(error_of("{expression: {name: own, expression: mean(y_pred)}}").empty());
}

}  // namespace trainctl::expression_metric_test
