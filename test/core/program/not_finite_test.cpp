// Tests that the search for NaN and Inf also finds values that are in no tensor of the program.
#include "core/exec/observe/not_finite.h"

#include "core/graph/ops/row_group.h"
#include "test/core/program/batch_of.h"
#include "test/core/program/job.h"
#include "test/core/program/slopes.h"

namespace trainctl::program_not_finite_test {

TEST_CASE("the search for NaN finds the values between the ops of a row group") {
  constexpr std::int64_t samples = 512;
  // The layer's output is finite: its mean of logarithms of negative numbers is replaced by 0.
  TestJob job(
      "layers: [{lambda: {name: hidden, expression: 'x + where(mean(log(x), axis=-1, keepdims=True) > 0, mean(log(x), "
      "axis=-1, keepdims=True), 0)'}}, {dense: {name: d, units: 2}}]",
      "sgd", "mse", "mean_absolute_error");
  job.spec.inputs[0].sample = {64};
  job.spec.outputs[0].target.shape = {2};
  std::vector<float> inputs(samples * 64, -2.0f), targets(samples * 2, 1.0f), weights(samples, 1.0f);
  std::vector<std::int64_t> numbers(samples);
  const Batch batch = batch_of(inputs, targets, weights, numbers);
  const auto backend = make_cpu_backend({.threads = 2});
  const auto communicator = solo_communicator();
  KernelChoices choices;
  Engine engine(*backend, *communicator, compile({job.evaluation(samples)}, *backend, choices));
  const auto& ops = engine.program(0).segments[0].ops;
  REQUIRE(std::any_of(ops.begin(), ops.end(), [](const PlacedOp& op) { return op.op.get_if<RowGroup>() != nullptr; }));
  std::mt19937 random(1);
  draw_weights(engine, random);
  engine.upload();
  NotFiniteSearch search(engine, 0, {});
  engine.set_observer(&search);
  StepResult result;
  engine.run(0, batch, {}, result);
  CAPTURE(to_text(search.found()));
  CHECK(to_text(search.found()).find("a value inside of 'hidden', computed by ") == 0);
}

}  // namespace trainctl::program_not_finite_test
