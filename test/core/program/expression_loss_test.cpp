// Compares losses that are expressions with the same losses of the library, and their gradients with slopes.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "test/catch.h"
#include "test/core/program/expression_job.h"
#include "test/core/program/slopes.h"

namespace trainctl::expression_loss_test {
namespace {

using namespace expression_test;

ProgramRun run(const Program& program, Samples& data) {
  return run_program(program, data.batch(program.batch.targets.size()));
}

void compare(const ProgramRun& found, const ProgramRun& expected) {
  REQUIRE(found.values.size() == expected.values.size());
  REQUIRE(found.gradients.size() == expected.gradients.size());
  for (std::size_t i = 0; i < found.values.size(); ++i) CHECK(found.values[i] == Approx(expected.values[i]));
  for (std::size_t i = 0; i < found.gradients.size(); ++i) {
    CHECK(found.gradients[i] == Approx(expected.gradients[i]).epsilon(1e-4).margin(1e-6));
  }
}

struct Twin {
  std::string expression, loss, network;
};

std::string error_of(const std::string& loss) {
  try {
    static_cast<void>(job_of(by_sample, loss, false).training(samples));
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a loss that is an expression is the same as the loss of the library", "[expression]") {
  const std::vector<Twin> twins = {
      {"{expression: mean(square(y_true - y_pred))}", "mean_squared_error", by_sample},
      {"{expression: 'mean(square(y_true - y_pred), axis=-1)'}", "mean_squared_error", by_sample},
      {"{expression: '2 * mean(abs(y_true - y_pred)) / scale', scale: 2}", "mean_absolute_error", by_sample},
      {"{expression: 'where(abs(y_true - y_pred) <= d, 0.5 * (y_true - y_pred) ** 2, "
       "d * abs(y_true - y_pred) - 0.5 * d * d)', d: 0.5}",
       "{name: huber, delta: 0.5}", by_sample},
      {"{expression: mean(log(cosh(y_pred - y_true)))}", "log_cosh", by_sample},
      {"{expression: '-sum(y_true * log(y_pred), axis=-1)'}", "categorical_crossentropy", probabilities},
  };
  for (const Twin& twin : twins) {
    for (const bool has_positions : {false, true}) {
      for (const bool weighs_positions : {false, true}) {
        if (weighs_positions && !has_positions) continue;
        CAPTURE(twin.expression, has_positions, weighs_positions);
        Samples data(has_positions, weighs_positions);
        const TestJob of_expression = job_of(twin.network, twin.expression, has_positions, weighs_positions);
        const TestJob of_library = job_of(twin.network, twin.loss, has_positions, weighs_positions);
        for (const int micro_batches : {1, 3}) {
          compare(run(of_expression.training(samples, micro_batches), data),
                  run(of_library.training(samples, micro_batches), data));
        }
        compare(run(of_expression.evaluation(samples), data), run(of_library.evaluation(samples), data));
      }
    }
  }
}

TEST_CASE("loss expressions leave out the positions of a padding mask", "[expression]") {
  const std::string masked = "layers: [{masking: {}}, {dense: {units: 5, activation: tanh}}, {dense: {units: 4}}]";
  Samples data(true, false);
  for (std::int64_t i = 0; i < samples * positions; ++i) {
    if (i % positions > i / positions % positions) std::fill_n(data.inputs.begin() + i * width, width, 0.0f);
  }
  const TestJob of_expression = job_of(masked, "{expression: 'mean(square(y_true - y_pred), axis=-1)'}", true);
  const TestJob of_library = job_of(masked, "mean_squared_error", true);
  for (const int micro_batches : {1, 3}) {
    compare(run(of_expression.training(samples, micro_batches), data),
            run(of_library.training(samples, micro_batches), data));
  }
  compare(run(of_expression.evaluation(samples), data), run(of_library.evaluation(samples), data));
}

TEST_CASE("a loss expression can be that of one of two outputs that are the same tensor", "[expression]") {
  const std::string text =
      "{outputs: [scores, kind], layers: [{dense: {name: scores, units: 4}}, {activation: {name: kind, activation: "
      "softmax}}]}";
  const auto job_with = [&](const char* loss) {
    TestJob job = job_of(text, loss, false);
    const TestJob kind = job_of(text, "categorical_crossentropy", false);
    job.spec.outputs.push_back(kind.spec.outputs[0]);
    job.spec.outputs[0].name = "scores";
    job.spec.outputs[1].name = "kind";
    return job;
  };
  Samples data(false, false);
  const auto results_of = [&](const char* loss) {
    const TestJob job = job_with(loss);
    const Program program = job.training(samples);
    return run(program, data);
  };
  compare(results_of("{expression: mean(square(y_true - y_pred))}"), results_of("mean_squared_error"));
}

TEST_CASE("gradients of loss expressions are the slopes of the loss", "[expression]") {
  for (const char* loss :
       {"{expression: 'mean(maximum(0, margin - y_true * y_pred))', margin: 1}",
        "{expression: 'mean(square(y_pred)) - 0.5 * mean(tanh(y_pred * y_true)) + 0.1'}",
        "{expression: 'logsumexp(y_pred - y_true, axis=1)'}", "{expression: 'mean(y_pred[:, 1:] * y_true[:, :-1])'}"}) {
    CAPTURE(loss);
    Samples data(false, false);
    const TestJob job = job_of(by_sample, loss, false);
    check_slopes(job.training(samples), data.batch(1), 4e-3f);
    check_slopes(job.training(samples, 2), data.batch(1), 4e-3f);
  }
}

TEST_CASE("samples of weight 0 change neither loss nor gradients, also if their values are not finite",
          "[expression]") {
  Samples data(false, false);
  const TestJob job = job_of(by_sample, "{expression: mean(square(y_pred) / y_true)}", false);  // 0 for sample 2
  const ProgramRun results = run(job.training(samples), data);
  CHECK(std::isfinite(results.values[0]));
  for (const float gradient : results.gradients) CHECK(std::isfinite(gradient));
  check_slopes(job.training(samples), data.batch(1), 4e-3f);
}

TEST_CASE("mistakes in loss expressions are reported with their column", "[expression]") {
  const std::pair<const char*, const char*> cases[] = {
      {"{expression: mean(sqare(y_pred))}", "column 6 of the expression: there is no function 'sqare'"},
      {"{expression: mean(y_pred - y_tru)}", "column 15 of the expression: 'y_tru' is unknown"},
      {"{expression: sum(y_pred)}", "axis is missing"},
      {"{expression: 'mean(y_pred) * mean(y_true)'}", "can only be multiplied or divided by a number"},
      {"{expression: 'mean(y_pred) + y_true[0]'}", "dimension 0"},
      {"{expression: mean(y_true)}", "does not use y_pred"},
      {"{expression: mean(y_true - y_pre)}",
       "does not use y_pred, the output of the network; did you mean it by 'y_pre'?"},
      {"{expression: mean(y_true - ypred) * pi}", "did you mean it by 'ypred'?"},
      {"{expression: mean(y_pred - ytrue)}", "'ytrue' is unknown; did you mean 'y_true'?"},
      {"{expression: 'count_nonzero(y_pred, axis=-1, keepdims=True)'}",
       "no argument 'keepdims'; if its result lacks a dimension, expand_dims(count_nonzero(...), axis) adds it"},
      {"{expression: 'mean(y_pred, axis=-1, keepdim=True)'}", "did you mean 'keepdims'?"},
      {"{expression: mean(y_pred if y_true else 0)}", "use where(condition, a, b)"},
      {"{expression: mean(y_pred), margin: 1}", "does not use 'margin'"},
      {"{expression: mean(y_pred) * y_true, y_true: 1}", "'y_true' cannot be set"},
      {"{expression: mean(y_pred}", "of the expression"},
      {"{expression: mean(maximum(0, y_pred)), margin: 1}", "'y_pred))' has no value; inside { }, a text with commas"},
      {"{expression: mean(y_pred) * margin, margin: x}", "margin"},
  };
  for (const auto& [loss, message] : cases) {
    CAPTURE(loss, error_of(loss));
    CHECK(error_of(loss).find(message) != std::string::npos);
  }
}

}  // namespace trainctl::expression_loss_test
