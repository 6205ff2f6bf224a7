// Tests that the plan writes compute copies where the engine does.
#include <algorithm>
#include <utility>
#include <vector>

#include "core/backend/cpu/cpu_backend.h"
#include "core/exec/engine.h"
#include "core/exec/observe/op_recorder.h"
#include "parallel/comm/communicators.h"
#include "parallel/plan/measured/stand_ins.h"
#include "parallel/plan/simulated_stage.h"
#include "parallel/trainer/initial_weights.h"
#include "test/catch.h"
#include "test/parallel/plan/hand_written_step.h"
#include "test/parallel/plan/measured/rank_of.h"

namespace trainctl::plan_copies_test {
namespace {

using Kernels = std::vector<std::pair<int, int>>;  // numbers of a segment and of an op in it

bool is_kernel(const PlacedProgram& program, int segment, int op) {
  return program.op(segment, op).op.def->trait() == OpTrait::kernel;
}

// The kernels of the engine's third step, in order.
Kernels executed(const RankOf& of, Backend& backend, const Compiled& ready) {
  const auto solo = solo_communicator();
  const LoopbackAxes axes(of.rank, ready.programs[0], backend, *solo);
  Engine engine(backend, axes.communicators(), ready);
  engine.download();
  initialize_weights(of.job.spec, 1, engine.weights());
  engine.upload();
  const RandomBatch batch(of.programs[0], backend);
  StepResult result;
  for (int step = 0; step < 2; ++step) engine.run(0, batch.batch(), {1e-3, step, false}, result);
  OpRecorder recorder;
  engine.set_observer(&recorder);
  engine.run(0, batch.batch(), {1e-3, 2, false}, result);
  engine.set_observer(nullptr);
  Kernels kernels;
  for (const OpRun& run : recorder.runs()) {
    if (is_kernel(*run.program, run.segment, run.op)) kernels.emplace_back(run.segment, run.op);
  }
  return kernels;
}

// The kernels of the simulated step, in order.
Kernels planned(const RankOf& of, const PlacedProgram& placed) {
  GivenCosts costs;
  costs.op = [](const PlacedProgram&, int, int) { return 1.0; };
  const RankList list(of.programs[0]);
  Kernels kernels;
  for (const StageAction& action : stage_actions(placed, list, OpSeconds(placed, costs))) {
    for (int op = action.first; op < action.end; ++op) {
      if (is_kernel(placed, action.item.segment, op)) kernels.emplace_back(action.item.segment, op);
    }
  }
  return kernels;
}

constexpr const char* spectral = R"(
layers:
  - spectral_normalization: {layers: [{conv2d: {filters: 8, kernel_size: 3, padding: same, activation: relu}}]}
  - flatten
  - dense: {units: 4, activation: softmax}
)";

}  // namespace

TEST_CASE("the plan runs the kernels of a step in the engine's order, with those that write compute copies") {
  const Setup setups[] = {
      {"copies at the start", convolutions, {}, 0},
      {"accumulation", convolutions, {}, 0, Shard::none, 2},
      {"copies after spectral normalization", spectral, {}, 0},
  };
  for (const Setup& setup : setups) {
    CAPTURE(setup.name);
    const RankOf of(setup);
    const auto backend = make_cpu_backend({});
    const Compiled ready = compiled(of, *backend);
    const PlacedProgram& placed = ready.programs[0];
    REQUIRE(!placed.segment(placed.copies_segment).ops.empty());
    const Kernels kernels = executed(of, *backend, ready);
    const auto is_copy = [&](const auto& kernel) { return kernel.first == placed.copies_segment; };
    CHECK(std::any_of(kernels.begin(), kernels.end(), is_copy));
    CHECK(planned(of, placed) == kernels);
  }
}

}  // namespace trainctl::plan_copies_test
