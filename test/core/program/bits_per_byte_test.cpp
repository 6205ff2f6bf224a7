// Tests bits_per_byte of a whole program against the loss and the bytes of the targets.
#include <cmath>
#include <memory>
#include <random>
#include <vector>

#include "test/catch.h"
#include "test/core/program/batch_of.h"
#include "test/core/program/job.h"
#include "test/core/program/slopes.h"

namespace trainctl::bits_per_byte_test {

TEST_CASE("bits_per_byte is the sum of losses in bits over the bytes of the tokens that count") {
  constexpr std::int64_t samples = 6, positions = 5, tokens = 7;
  TestJob job("layers: [{embedding: {input_dim: 7, output_dim: 4}}, {dense: {units: 7}}]", "sgd",
              "{name: sparse_categorical_crossentropy, from_logits: true, ignore_index: 6}", "accuracy, bits_per_byte");
  job.spec.inputs[0].sample = {positions};
  job.spec.inputs[0].format.dtype = DType::int32;
  const auto table = std::make_shared<const std::vector<float>>(std::vector<float>{0, 1, 2, 3, 4, 5, 6});
  job.spec.outputs[0].target = {tokens, {positions}};
  job.spec.outputs[0].target.token_bytes = [&] { return table; };
  std::mt19937 random(3);
  std::vector<std::int32_t> inputs, targets;
  std::vector<float> weights;
  std::vector<std::int64_t> numbers;
  double bytes = 0, weight_sum = 0;
  for (std::int64_t i = 0; i < samples; ++i) {
    weights.push_back(i == 2 ? 0.0f : 0.5f + static_cast<float>(i));
    numbers.push_back(i);
    for (std::int64_t p = 0; p < positions; ++p) {
      inputs.push_back(static_cast<std::int32_t>(random() % tokens));
      targets.push_back(static_cast<std::int32_t>(random() % tokens));
      if (targets.back() == 6) continue;
      bytes += weights.back() * (*table)[static_cast<std::size_t>(targets.back())];
      weight_sum += 1;
    }
  }
  const Batch batch = batch_of(inputs, targets, weights, numbers);
  for (const Program& program : {job.training(samples), job.evaluation(samples)}) {
    const auto backend = make_cpu_backend({});
    const auto communicator = solo_communicator();
    KernelChoices choices;
    Engine engine(*backend, *communicator, compile({program}, *backend, choices));
    draw_weights(engine, random);
    engine.upload();
    StepResult step;
    engine.run(0, batch, {}, step);
    REQUIRE(program.results.size() == 3);
    CHECK(program.results[2].name == "bits_per_byte");
    CHECK(step.count == weight_sum);  // positions that count
    const double loss_sum = program.results[0].of(step.sums, step.count) * step.count;
    CHECK(program.results[2].of(step.sums, step.count) == Approx(loss_sum / std::log(2.0) / bytes).epsilon(1e-5));
  }
}

}  // namespace trainctl::bits_per_byte_test
