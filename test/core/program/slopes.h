// Runs programs for their results and gradients, and compares gradients with the slopes of the loss.
#pragma once

#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

#include "core/backend/choices.h"
#include "core/backend/cpu/cpu_backend.h"
#include "core/exec/engine.h"
#include "parallel/comm/communicators.h"
#include "test/catch.h"

namespace trainctl {

// Fills an engine's weights with random values, on the host.
inline void draw_weights(Engine& engine, std::mt19937& random) {
  std::normal_distribution<float> normal;
  for (const NamedTensor& tensor : engine.weights()) {
    for (std::int64_t i = 0; i < tensor.view.count; ++i) tensor.view.as<float>()[i] = 0.3f * normal(random);
  }
}

inline std::vector<float> gradients_of(Engine& engine, const Program& program) {
  std::vector<std::byte> bytes;
  engine.read_tensor(0, program.step.gradients, bytes);
  std::vector<float> gradients(bytes.size() / sizeof(float));
  std::memcpy(gradients.data(), bytes.data(), bytes.size());
  return gradients;
}

struct ProgramRun {
  std::vector<double> values;    // of program.results
  std::vector<float> gradients;  // empty for an evaluation
};

// Runs a program once on a batch, with random weights.
inline ProgramRun run_program(const Program& program, const Batch& batch) {
  const auto backend = make_cpu_backend({.threads = 2});
  const auto communicator = solo_communicator();
  KernelChoices choices;
  Engine engine(*backend, *communicator, compile({program}, *backend, choices));
  std::mt19937 random(22);
  draw_weights(engine, random);
  engine.upload();
  StepResult step;
  engine.run(0, batch, {}, step);
  ProgramRun run;
  for (const MetricResult& result : program.results) run.values.push_back(result.of(step.sums, step.count));
  if (program.step.gradients != no_tensor) run.gradients = gradients_of(engine, program);
  return run;
}

// Fills the weights with random values, draws elements of every parameter and compares their gradients on the batch
// with central differences of the loss over 2 * `step`.
inline void check_slopes(const Program& program, const Batch& batch, float step) {
  const auto backend = make_cpu_backend({});
  const auto communicator = solo_communicator();
  KernelChoices choices;
  Engine engine(*backend, *communicator, compile({program}, *backend, choices));
  std::mt19937 random(22);
  draw_weights(engine, random);
  StepResult result;
  const auto loss = [&] {
    engine.upload();
    engine.run(0, batch, {}, result);  // learning rate 0: weights do not change
    return program.results[0].of(result.sums, result.count) * result.count;
  };
  loss();
  const std::vector<float> gradients = gradients_of(engine, program);

  for (const FlatEntry& entry : program.flat.parameters) {
    const std::string& name = program.tensor(entry.parameter).name;
    const auto& all = engine.weights();
    const auto tensor = std::find_if(all.begin(), all.end(), [&](const NamedTensor& t) { return t.name == name; });
    REQUIRE(tensor != all.end());
    for (int draw = 0; draw < 6; ++draw) {
      const auto element = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(entry.count));
      float& value = tensor->view.as<float>()[element];
      const float before = value;
      value = before + step;
      const double above = loss();
      value = before - step;
      const double below = loss();
      value = before;
      CAPTURE(name, element);
      CHECK(gradients[static_cast<std::size_t>(entry.offset + element)] ==
            Approx((above - below) / (2 * step)).epsilon(0.02).margin(0.01));
    }
  }
}

}  // namespace trainctl
