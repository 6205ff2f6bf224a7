// Tests that a rank's step runs with loopback communicators as in a run, and that every kernel op is timed.
#include "parallel/plan/measured/measure_step.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "core/backend/cpu/cpu_backend.h"
#include "core/base/clock.h"
#include "core/base/format.h"
#include "core/base/median.h"
#include "core/exec/engine.h"
#include "parallel/comm/communicators.h"
#include "parallel/plan/measured/measured_costs.h"
#include "parallel/plan/measured/stand_ins.h"
#include "parallel/trainer/initial_weights.h"
#include "test/catch.h"
#include "test/parallel/comm/on_threads.h"
#include "test/parallel/plan/measured/rank_of.h"

namespace trainctl::measure_step_test {
namespace {

const Setup setups[] = {
    {"one rank", convolutions, {}, 0},
    {"replicas", convolutions, {.data = 4}, 3},
    {"accumulation", convolutions, {.data = 2}, 0, Shard::none, 2},
    {"sharded parameters", convolutions, {.data = 2}, 1, Shard::parameters},
    {"first stage", convolutions, {.pipeline = 2}, 0, Shard::none, 4},
    {"last stage of replicas", convolutions, {.data = 2, .pipeline = 2}, 3, Shard::none, 4},
    {"split layers", convolutions, {.tensor = 2}, 1},
    {"tokens", tokens, {.data = 2}, 1},
};

// Calls body(segment number, op number) for each kernel op of a step.
template <class Body>
void for_kernels(const PlacedProgram& program, Body body) {
  for (const ScheduleItem& item : program.program.schedule) {
    const auto& ops = program.segment(item.segment).ops;
    for (int o = 0; o < static_cast<int>(ops.size()); ++o) {
      if (ops[static_cast<std::size_t>(o)].op.def->trait() == OpTrait::kernel) body(item.segment, o);
    }
  }
}

}  // namespace

TEST_CASE("with loopback communicators a step computes finite, nonzero values") {
  for (const Setup& setup : setups) {
    CAPTURE(setup.name);
    const auto backend = make_cpu_backend({});
    const auto memory = solo_communicator();
    const RankOf of(setup);
    const Compiled ready = compiled(of, *backend);
    const LoopbackAxes axes(of.rank, ready.programs[0], *backend, *memory);
    for (const MeshAxis axis : all_mesh_axes) {
      const Communicator* loopback = axes.communicators().find(axis);
      CHECK((loopback == nullptr ? 1 : loopback->size()) == setup.mesh.size(axis));
    }
    Engine engine(*backend, axes.communicators(), ready);
    engine.download();
    initialize_weights(of.job.spec, 1, engine.weights());
    engine.upload();
    const RandomBatch batch(of.programs[0], *backend);
    StepResult result;
    for (int step = 0; step < 5; ++step) {
      engine.run(0, batch.batch(), {1e-3, step, false}, result);
      CHECK(!result.not_finite);
      CHECK(std::isfinite(result.gradient_norm));
      CHECK(result.gradient_norm > 0);
    }
    engine.download();
    double weights = 0;
    for (const NamedTensor& tensor : engine.weights()) {
      for (std::int64_t i = 0; i < tensor.view.count; ++i) weights += std::abs(tensor.view.as<float>()[i]);
    }
    CHECK(std::isfinite(weights));
    CHECK(weights > 0);
    // No input of 16 elements or more is all zeros after the step.
    const PlacedProgram& program = engine.program(0);
    std::vector<std::byte> bytes;
    for (TensorId id = 0; id < static_cast<TensorId>(program.program.tensors.size()); ++id) {
      const Tensor& tensor = program.program.tensor(id);
      if (tensor.role != Role::input || tensor.type.shape.count() < 16) continue;
      CAPTURE(tensor.name);
      engine.read_tensor(0, id, bytes);
      CHECK(std::any_of(bytes.begin(), bytes.end(), [](std::byte byte) { return byte != std::byte{0}; }));
    }
  }
}

TEST_CASE("every kernel op of a measured step has a time") {
  for (const Setup& setup : setups) {
    CAPTURE(setup.name);
    const auto backend = make_cpu_backend({});
    const auto alone = solo_communicator();
    const RankOf of(setup);
    const Compiled ready = compiled(of, *backend);
    CHECK(!has_step({}, 1, ready.programs[0]));
    const Measurements found = measure_step({ready, 0, of.rank, of.job.spec}, *backend, *alone, *alone, 0.05);
    CHECK(step_spread(found, 1, ready.programs[0]).has_value());
    CHECK(!step_spread(found, 2, ready.programs[0]));  // not measured with two ranks at once
    Measurements kept;
    kept.add_file(found.file_text());
    const MeasuredCosts costs(kept, {});
    for_kernels(ready.programs[0], [&](int segment, int op) {
      CAPTURE(ready.programs[0].op(segment, op).op.name);
      CHECK(costs.op_seconds(ready.programs[0], segment, op) > 0);
      CHECK(costs.op_seconds(ready.programs[0], segment, op) < 0.1);
    });
    const HostSeconds host = costs.host_seconds(ready.programs[0]);
    CHECK(host.step >= 0);
    CHECK(host.sample == 0);  // no data was loaded
    CHECK(!host.overlaps_loading);
  }
}

namespace {

// The median time of a step, timed without the helpers of measure_step().
class TimedSteps {
 public:
  TimedSteps(const RankOf& of, Backend& backend, Communicator& alone, const Compiled& ready)
      : engine_(backend, MeshCommunicators(alone), ready), batch_(of.programs[0], backend) {
    engine_.download();
    initialize_weights(of.job.spec, 1, engine_.weights());
    engine_.upload();
  }

  double median_seconds() {
    std::vector<double> seconds;
    for (int step = 0; step < 20; ++step) {
      const double start = seconds_now();
      engine_.run(0, batch_.batch(), {1e-6, number_++, false}, result_);
      if (step >= 3) seconds.push_back(seconds_now() - start);
    }
    return median(seconds);
  }

 private:
  Engine engine_;
  RandomBatch batch_;
  StepResult result_;
  std::int64_t number_ = 0;
};

}  // namespace

// Other programs may slow down the steps before, during or after the measurement, each differently. Therefore the
// measured time must lie between those before and after it, and several tries are allowed.
TEST_CASE("the times of the ops and of the host add up to the time of the step") {
  Setup setup = setups[0];  // large enough that its ops can be timed accurately
  setup.network =
      "layers: [flatten, {dense: {units: 2048, activation: relu}}, {dense: {units: 2048, activation: relu}}, {dense: "
      "{units: 4}}]";
  const auto backend = make_cpu_backend({});
  const auto alone = solo_communicator();
  const RankOf of(setup);
  const Compiled ready = compiled(of, *backend);
  TimedSteps steps(of, *backend, *alone, ready);
  constexpr int most_tries = 8;
  std::string tries;
  bool fits = false;
  for (int i = 0; i < most_tries && !fits; ++i) {
    const double before = steps.median_seconds();
    const MeasuredCosts costs(measure_step({ready, 0, of.rank, of.job.spec}, *backend, *alone, *alone, 0.5), {});
    double predicted = costs.host_seconds(ready.programs[0]).step;
    for_kernels(ready.programs[0],
                [&](int segment, int op) { predicted += costs.op_seconds(ready.programs[0], segment, op); });
    const double after = steps.median_seconds();
    fits = predicted > 0.85 * std::min(before, after) && predicted < 1.15 * std::max(before, after);
    tries +=
        format("{:.2f} ms, then {:.2f} ms predicted, then {:.2f} ms\n", 1e3 * before, 1e3 * predicted, 1e3 * after);
  }
  CAPTURE(tries);
  CHECK(fits);
}

TEST_CASE("ranks that measure at the same time record the same measurements") {
  std::vector<std::string> files(2);
  const auto errors = on_threads(2, [&](Communicator& together) {
    const auto backend = make_cpu_backend({});
    Setup setup = setups[1];
    setup.network = "layers: [flatten, {dense: {units: 64, activation: relu}}, {dense: {units: 4}}]";
    const RankOf of(setup);
    const Compiled ready = compiled(of, *backend);
    files[static_cast<std::size_t>(together.rank())] =
        measure_step({ready, 0, of.rank, of.job.spec}, *backend, together, together, 0.05).file_text();
  });
  CHECK(errors == std::vector<std::string>(2));
  CHECK(files[0] == files[1]);
  CHECK(files[0].find("2 at once: op dense") != std::string::npos);
}

}  // namespace trainctl::measure_step_test
