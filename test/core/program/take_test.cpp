// Tests the rows of a weight that an expression takes by numbers which it computes.
#include <cmath>
#include <string>

#include "test/core/program/batch_of.h"
#include "test/core/program/job.h"
#include "test/core/program/slopes.h"

namespace trainctl::program_take_test {
namespace {

constexpr std::int64_t samples = 4, positions = 2;

TestJob job() {
  TestJob job(
      "layers: [{lambda: {name: rows, expression: 'take(table, x, axis=0)', weights: {table: {shape: [3, 5]}}}}]",
      "sgd", "mse", "mean_absolute_error");
  job.spec.inputs[0].sample = {positions};
  job.spec.outputs[0].target.shape = {positions, 5};
  return job;
}

struct Samples {
  std::vector<float> inputs, targets = std::vector<float>(samples * positions * 5, 0.5f),
                             weights = std::vector<float>(samples, 1.0f);
  std::vector<std::int64_t> numbers = std::vector<std::int64_t>(samples);

  Batch batch() { return batch_of(inputs, targets, weights, numbers); }
};

}  // namespace

TEST_CASE("take() of rows gives NaN for numbers that are no rows, and the gradient of the others") {
  Samples data{{0, 2, 1, 1, 2, 0, 1, 2}};
  check_slopes(job().training(samples), data.batch(), 1e-2f);
  data.inputs = {0, 2, 3, 1, -1, -0.5f, 2.9f, 1e9f};
  const Program prediction = job().prediction(samples);
  const auto backend = make_cpu_backend({});
  const auto communicator = solo_communicator();
  KernelChoices choices;
  Engine engine(*backend, *communicator, compile({prediction}, *backend, choices));
  std::mt19937 random(1);
  draw_weights(engine, random);
  engine.upload();
  StepResult result;
  engine.run(0, data.batch(), {}, result);
  std::vector<std::byte> bytes;
  engine.read_tensor(0, prediction.step.predictions[0], bytes);
  const float* const table = engine.weights()[0].view.as<float>();
  for (std::size_t i = 0; i < data.inputs.size(); ++i) {
    CAPTURE(data.inputs[i]);
    const float row = std::trunc(data.inputs[i]);
    for (std::size_t k = 0; k < 5; ++k) {
      float value = 0;
      std::memcpy(&value, bytes.data() + (i * 5 + k) * sizeof(float), sizeof(float));
      if (data.inputs[i] > -1 && row < 3) {
        CHECK(value == Approx(table[static_cast<std::size_t>(row) * 5 + k]));
      } else {
        CHECK(std::isnan(value));
      }
    }
  }
}

}  // namespace trainctl::program_take_test
