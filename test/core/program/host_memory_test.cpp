// Tests that training in the host's memory needs no second copy of the weights and of cheap activations, and computes
// the same bits as on a device with memory of its own.
#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/backend/cpu/cpu_backend.h"
#include "core/compile/cheap_values.h"
#include "core/graph/ops/elementwise/activations.h"
#include "core/graph/ops/normalization/layer_norm.h"
#include "test/core/program/batch_of.h"
#include "test/core/program/job.h"
#include "test/core/program/slopes.h"
#include "test/support/forwarded_backend.h"

namespace trainctl::host_memory_test {
namespace {

constexpr std::int64_t samples = 8, positions = 64, inputs = 32, mebibyte = 1 << 20;

// The CPU as a device whose memory the host must not use.
class ApartDevice final : public ForwardedBackend {
 public:
  using ForwardedBackend::ForwardedBackend;
  bool on_host() const override { return false; }
};

// Two blocks of a transformer without attention: their activations have `width` and 4 `width` columns.
TestJob job_of(int width) {
  const std::string block =
      "  - residual: {layers: [layer_normalization, {dense: {units: " + std::to_string(4 * width) +
      ", activation: gelu}}, {dense: {units: " + std::to_string(width) + "}}]}\n";
  TestJob job("layers:\n  - dense: {units: " + std::to_string(width) + "}\n" + block + block +
              "  - global_average_pooling1d\n  - dense: {units: 3, activation: softmax}\n");
  job.spec.inputs[0].sample = {positions, inputs};
  job.spec.outputs[0].target.classes = 3;
  job.spec.moving_average = 0.9f;
  return job;
}

template <class Def>
std::ptrdiff_t count(const Program& program, Phase phase) {
  const Segment& segment = program.segment(program.find(phase));
  return std::ranges::count_if(segment.ops, [](const Op& op) { return op.get_if<Def>() != nullptr; });
}

struct RandomBatch {
  std::vector<float> values, weights = std::vector<float>(samples, 1.0f);
  std::vector<std::int32_t> targets;
  std::vector<std::int64_t> numbers;
  Batch batch;

  RandomBatch() {
    std::mt19937 random(8);
    std::normal_distribution<float> normal;
    for (std::int64_t i = 0; i < samples * positions * inputs; ++i) values.push_back(normal(random));
    for (std::int64_t i = 0; i < samples; ++i) {
      targets.push_back(static_cast<std::int32_t>(random() % 3));
      numbers.push_back(i);
    }
    batch = batch_of(values, targets, weights, numbers);
  }
};

using Values = std::map<std::string, std::vector<float>>;

Values values_of(const Engine& engine) {
  Values values;
  for (const auto* tensors : {&engine.weights(), &engine.state()}) {
    for (const NamedTensor& tensor : *tensors) {
      const float* first = tensor.view.as<float>();
      values[tensor.name] = {first, first + tensor.view.count};
    }
  }
  return values;
}

void initialize(Engine& engine) {
  std::mt19937 random(5);
  draw_weights(engine, random);
  engine.begin_at_weights();
  engine.upload();
}

}  // namespace

TEST_CASE("results of cheap ops are computed again before products that take far longer") {
  const Program kept = job_of(512).training(samples);
  Program again = kept;
  recompute_cheap_values(again);
  CHECK(count<LayerNorm>(kept, Phase::backward) + count<Activation>(kept, Phase::backward) == 0);
  CHECK(count<LayerNorm>(again, Phase::backward) == 2);
  CHECK(count<Activation>(again, Phase::backward) == 2);
  CHECK(again.segment(again.find(Phase::forward)).ops.size() == kept.segment(kept.find(Phase::forward)).ops.size());
  // No op of the backward pass reads the results of the forward pass.
  std::set<TensorId> repeated;
  for (const Op& op : again.segment(again.find(Phase::forward)).ops) {
    if (op.get_if<LayerNorm>() != nullptr || op.get_if<Activation>() != nullptr) repeated.insert(op.outputs[0]);
  }
  for (const Op& op : again.segment(again.find(Phase::backward)).ops) {
    for (const TensorId id : op.inputs) CHECK_FALSE(repeated.contains(id));
  }
}

TEST_CASE("results are kept if the ops that read them are cheap, too, or compute in bfloat16") {
  const auto repeated = [](const TestJob& job) {
    Program program = job.training(samples);
    recompute_cheap_values(program);
    return count<LayerNorm>(program, Phase::backward) + count<Activation>(program, Phase::backward);
  };
  // Activations of 1 MiB, too, but the products before and after them have 128 rows and columns at most.
  CHECK(repeated(
            TestJob("layers: [{dense: {units: 128}}, {dense: {units: 128, activation: gelu}}, {dense: {units: 128}}]",
                    "adam", "mse", "mean_absolute_error")) == 0);
  TestJob narrow = job_of(512);
  narrow.spec.compute = DType::bfloat16;
  CHECK(repeated(narrow) == 0);
}

TEST_CASE("in the host's memory a step computes the same bits with less memory") {
  const TestJob job = job_of(512);
  RandomBatch data;
  const auto train = [&](Backend& backend) {
    const auto communicator = solo_communicator();
    KernelChoices choices;
    choices.stop_timing();
    Engine engine(backend, *communicator, compile({job.training(samples, 2)}, backend, choices));
    initialize(engine);
    StepResult result;
    for (int step = 0; step < 3; ++step) engine.run(0, data.batch, {.learning_rate = 0.01, .step = step}, result);
    engine.download();
    return std::pair(values_of(engine), engine.memory().of(Region::slot));
  };
  const auto host = make_cpu_backend({.threads = 2});
  ApartDevice device(make_cpu_backend({.threads = 2}));
  const auto [on_host, less] = train(*host);
  const auto [on_device, more] = train(device);
  CHECK(on_host == on_device);
  CHECK(on_host.size() > 30);
  CHECK(less <= more - 2 * mebibyte);  // a micro-batch's activation of the first block; the last one is needed at once
}

TEST_CASE("the views of the weights are the values of a step in the host's memory, and copies of a device's memory") {
  const TestJob job = job_of(16);
  RandomBatch data;
  const auto check = [&](Backend& backend) {
    const auto communicator = solo_communicator();
    KernelChoices choices;
    choices.stop_timing();
    Engine engine(backend, *communicator, compile({job.training(samples)}, backend, choices));
    initialize(engine);
    const Values before = values_of(engine);
    StepResult result;
    for (int step = 0; step < 2; ++step) engine.run(0, data.batch, {.learning_rate = 0.01, .step = step}, result);
    CHECK((values_of(engine) == before) == !backend.on_host());
    // A copy has the values of the device, also before the download.
    std::vector<float> copied;
    for (const auto* tensors : {&engine.weights(), &engine.state()}) {
      std::int64_t bytes = 0;
      for (const NamedTensor& tensor : *tensors) bytes += tensor.view.bytes();
      std::vector<float> part(static_cast<std::size_t>(bytes) / sizeof(float));
      engine.copy(*tensors, reinterpret_cast<std::byte*>(part.data()));
      copied.insert(copied.end(), part.begin(), part.end());
    }
    engine.download();
    std::vector<float> downloaded;
    for (const auto* tensors : {&engine.weights(), &engine.state()}) {
      for (const NamedTensor& tensor : *tensors) {
        const float* first = tensor.view.as<float>();
        downloaded.insert(downloaded.end(), first, first + tensor.view.count);
      }
    }
    CHECK(copied == downloaded);
    const Values after = values_of(engine);
    CHECK(after != before);
    // Training continues at the averages.
    engine.begin_at_weights();
    engine.upload();
    engine.download();
    int parameters = 0;
    for (const auto& [name, values] : values_of(engine)) {
      if (!name.starts_with("latest/")) continue;
      CHECK(values == after.at(name.substr(7)));
      CHECK(values != after.at(name));
      ++parameters;
    }
    CHECK(parameters == 16);
    return after;
  };
  const auto host = make_cpu_backend({});
  ApartDevice device(make_cpu_backend({}));
  CHECK(check(*host) == check(device));
}

}  // namespace trainctl::host_memory_test
