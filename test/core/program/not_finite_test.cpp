// Tests that the search for NaN and Inf also finds values that are in no tensor of the program.
#include "core/exec/observe/not_finite.h"

#include <set>

#include "core/exec/observe/tensor_words.h"
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
  CHECK(to_text(search.found()).find("a value inside of layer 'hidden', computed by ") == 0);
}

TEST_CASE("tensors are named by the user's layers, and by what of them they are") {
  TestJob job(
      "layers: [{dense: {name: hidden, units: 3}}, {batch_normalization: {name: norm}}, {dense: {name: d, units: 2}}]",
      "{name: sgd, momentum: 0.9}", "mse", "mean_absolute_error");
  job.spec.inputs[0].sample = {4};
  job.spec.outputs[0].target.shape = {2};
  const Program program = job.training(8);
  const auto words = [&](const std::string& name) { return tensor_words(program, name, "hidden"); };
  CHECK(words("hidden/output") == "the output of layer 'hidden'");
  CHECK(words("block/conv/output") == "the output of layer 'block/conv'");
  CHECK(words("hidden/output/gradient") == "the gradient of the output of layer 'hidden'");
  CHECK(words("hidden/output/gradient_3") == "the gradient of the output of layer 'hidden'");
  CHECK(words("hidden/output/again/gradient") == "the gradient of the output of layer 'hidden'");
  CHECK(words("d/kernel") == "the weight 'kernel' of layer 'd'");
  CHECK(words("d/kernel/gradient/summand") == "the gradient of the weight 'kernel' of layer 'd'");
  CHECK(words("norm/moving_variance") == "the weight 'moving_variance' of layer 'norm'");
  CHECK(words("momentum/d/bias") == "the optimizer's state 'momentum' of the weight 'bias' of layer 'd'");
  CHECK(words("averages/d/bias") == "the moving average of the weight 'bias' of layer 'd'");
  CHECK(words("loss") == "the loss");
  CHECK(words("digit_loss/gradient") == "the gradient of the loss of output 'digit'");
  CHECK(words("hidden/mask") == "a value of layer 'hidden'");
  CHECK(tensor_words(program, "norm_of_all", "") == "the value 'norm_of_all'");
  std::set<std::string> named;
  for (const Tensor& tensor : program.tensors) named.insert(tensor_words(program, tensor.name, ""));
  for (const char* expected : {"the output of layer 'd'", "the weight 'kernel' of layer 'hidden'", "the loss",
                               "the gradient of the weight 'gamma' of layer 'norm'"}) {
    CAPTURE(expected);
    CHECK(named.contains(expected));
  }
}

}  // namespace trainctl::program_not_finite_test
