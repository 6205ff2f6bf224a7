// Tests the trace of a step on an engine: its values are those of a closed form, samples are found in any order and in
// any micro-batches, and a weight that was changed shows at the op that reads it first.
#include "core/exec/observe/step_trace.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <random>

#include "core/backend/choices.h"
#include "core/backend/cpu/cpu_backend.h"
#include "core/exec/observe/trace_difference.h"
#include "parallel/comm/communicators.h"
#include "test/catch.h"
#include "test/core/program/batch_of.h"
#include "test/core/program/job.h"
#include "test/core/program/slopes.h"

namespace trainctl::step_trace_test {
namespace {

constexpr std::int64_t samples = 8, width = 8 * 8 * 2;

constexpr const char* network =
    "layers: [{conv2d: {name: c, filters: 8, kernel_size: 3, padding: same, activation: relu}}, {max_pooling2d: "
    "{pool_size: 2}}, flatten, {dense: {name: d, units: 5}}, {dense: {name: e, units: 3, activation: softmax}}]";

// A batch of samples with the given numbers, in the given order.
struct NumberedBatch {
  std::vector<float> inputs, weights = std::vector<float>(samples, 1.0f);
  std::vector<std::int32_t> targets;
  std::vector<std::int64_t> numbers;
  Batch batch;

  explicit NumberedBatch(std::vector<std::int64_t> order) : numbers(std::move(order)) {
    for (const std::int64_t number : numbers) {
      std::mt19937 random(static_cast<unsigned>(number));
      std::normal_distribution<float> normal;
      for (std::int64_t i = 0; i < width; ++i) inputs.push_back(normal(random));
      targets.push_back(static_cast<std::int32_t>(number % 3));
    }
    batch = batch_of(inputs, targets, weights, numbers);
    batch.global_count = samples;
  }
};

// Traces a step on its own engine. Changes one element of the weight `changed` before, unless the name is empty.
struct Traced {
  std::vector<TraceRecord> records;
  std::map<std::string, std::vector<float>> weights, gradients;

  Traced(const NumberedBatch& data, int micro_batches, DType compute = DType::float32, const std::string& tensor = "",
         const std::string& changed = "") {
    TestJob job(network);
    job.spec.compute = compute;
    const Program program = job.training(samples, micro_batches);
    const auto backend = make_cpu_backend({});
    const auto communicator = solo_communicator();
    KernelChoices choices;
    choices.stop_timing();
    Engine engine(*backend, *communicator, compile({program}, *backend, choices));
    std::mt19937 random(3);
    draw_weights(engine, random);
    for (const NamedTensor& weight : engine.weights()) {
      float& value = weight.view.as<float>()[0];
      if (weight.name == changed) value *= 1.5f;
      weights[weight.name].assign(weight.view.as<float>(), weight.view.as<float>() + weight.view.count);
    }
    engine.upload();
    StepTrace trace(engine, *backend, MeshRank(), tensor);
    trace.set_samples(data.batch);
    engine.set_observer(&trace);
    StepResult result;
    engine.run(0, data.batch, {}, result);
    records = trace.records();
    std::vector<float> memory;
    for (const NamedTensor& gradient : trace.read_gradients(memory)) {
      gradients[gradient.name].assign(gradient.view.as<float>(), gradient.view.as<float>() + gradient.view.count);
    }
  }
};

}  // namespace

TEST_CASE("a traced tensor holds the values that its op computed, by sample") {
  const DType compute = GENERATE(DType::float32, DType::bfloat16);
  const NumberedBatch data({4, 0, 7, 2, 1, 6, 3, 5});
  const Traced conv(data, 4, compute, "c/output");
  REQUIRE(conv.records.size() == 4);
  const std::vector<float>& kernel = conv.weights.at("c/kernel");  // 3x3x2x8
  const std::vector<float>& bias = conv.weights.at("c/bias");
  std::size_t position = 0;
  for (const TraceRecord& record : conv.records) {
    REQUIRE(record.samples.size() == 2);
    REQUIRE(record.sample_hash.size() == 2);
    REQUIRE(record.values.size() == 2 * 8 * 8 * 8);
    for (std::size_t i = 0; i < 2; ++i, ++position) {
      CHECK(record.samples[i] == data.numbers[position]);
      const float* x = data.inputs.data() + position * width;
      for (int h = 0; h < 8; ++h) {
        for (int w = 0; w < 8; ++w) {
          const int filter = (h + w) % 8;
          double sum = bias[static_cast<std::size_t>(filter)];
          for (int kh = 0; kh < 3; ++kh) {
            for (int kw = 0; kw < 3; ++kw) {
              const int row = h + kh - 1, column = w + kw - 1;
              if (row < 0 || row >= 8 || column < 0 || column >= 8) continue;
              for (int c = 0; c < 2; ++c) {
                const int at = ((kh * 3 + kw) * 2 + c) * 8 + filter;
                sum += double{x[(row * 8 + column) * 2 + c]} * kernel[static_cast<std::size_t>(at)];
              }
            }
          }
          // The max pooling after the convolution computes the convolution's relu.
          const float found =
              record.values[((i * 8 + static_cast<std::size_t>(h)) * 8 + static_cast<std::size_t>(w)) * 8 +
                            static_cast<std::size_t>(filter)];
          CHECK(found == Approx(sum).margin(compute == DType::float32 ? 1e-5 : 0.05));
        }
      }
    }
  }
}

TEST_CASE("the same samples in another order and in other micro-batches have the same trace") {
  const Traced a(NumberedBatch({0, 1, 2, 3, 4, 5, 6, 7}), 4), b(NumberedBatch({5, 4, 1, 0, 3, 2, 7, 6}), 4);
  const TraceComparison same = compare(a.records, b.records);
  CHECK_FALSE(same.first);
  CHECK(same.equal >= 8);         // outputs and their gradients
  CHECK(same.incomparable >= 2);  // gradients of weights

  const Traced changed(NumberedBatch({0, 1, 2, 3, 4, 5, 6, 7}), 4, DType::float32, "", "d/kernel");
  const TraceComparison found = compare(a.records, changed.records);
  REQUIRE(found.first);
  CHECK(found.first->segment == "forward");
  CHECK(found.first->op == "dense");
  CHECK(found.first->tensor == "d/output");
  CHECK(found.first->by_sample);
  CHECK(found.equal >= 2);  // convolution and pooling
}

TEST_CASE("gradients are traced with the samples that were added, and read whole after the step") {
  const NumberedBatch data({0, 1, 2, 3, 4, 5, 6, 7});
  const Traced one(data, 1), four(data, 4);
  std::vector<std::int64_t> largest;
  for (const TraceRecord& record : four.records) {
    if (record.tensor == "d/kernel/gradient" && record.samples.size() > largest.size()) largest = record.samples;
  }
  CHECK(largest == data.numbers);
  REQUIRE(one.gradients.size() == 6);
  for (const auto& [name, values] : one.gradients) {
    CAPTURE(name);
    const std::vector<float>& other = four.gradients.at(name);
    REQUIRE(values.size() == other.size());
    CHECK(std::any_of(values.begin(), values.end(), [](float value) { return value != 0; }));
    for (std::size_t i = 0; i < values.size(); ++i) CHECK(values[i] == Approx(other[i]).epsilon(1e-3).margin(1e-4));
  }
}

}  // namespace trainctl::step_trace_test
