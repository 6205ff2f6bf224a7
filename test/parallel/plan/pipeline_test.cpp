// Tests simulated pipelines of real stage programs: with equal stages the bubble is that of the formula.
#include <algorithm>

#include "core/base/format.h"
#include "core/compile/compile.h"
#include "parallel/strategies/strategy.h"
#include "test/catch.h"
#include "test/core/program/job.h"
#include "test/parallel/plan/hand_written_step.h"

namespace trainctl::pipeline_test {
namespace {

// A network of equal layers, one for each stage.
std::string network_of(int stages) {
  std::string text = "layers: [{flatten: {name: flat}}";
  for (int i = 0; i < stages; ++i) text += format(", {{dense: {{name: d{}, units: 128, use_bias: false}}}}", i);
  return text + "]";
}

struct Pipeline {
  TestJob job;
  Strategy strategy;
  std::vector<Program> programs;
  std::vector<Compiled> compiled;

  Pipeline(int stages, int micro_batches, PipelineSchedule schedule)
      : job(network_of(stages), "sgd", "mean_squared_error", "mean_absolute_error") {
    job.spec.outputs[0].target.shape = {128};
    strategy.mesh = {.pipeline = stages};
    strategy.stages["flat"] = 0;
    strategy.options.schedule = schedule;
    for (int s = 0; s < stages; ++s) strategy.stages[format("d{}", s)] = s;
    for (int s = 0; s < stages; ++s) {
      Reader reader;
      programs.push_back(training_program(job.spec, {2, micro_batches}, reader, parallelism(strategy, s)));
      reader.throw_if_failed();
    }
    for (const Program& program : programs) compiled.push_back(compile_without_kernels({program}, {}));
  }

  SimulatedStep simulate(const Costs& costs) const {
    std::vector<StageRank> ranks;
    for (std::size_t s = 0; s < programs.size(); ++s) {
      ranks.push_back({&programs[s], &compiled[s].programs[0], MeshRank(strategy.mesh, static_cast<int>(s))});
    }
    return simulate_step(ranks, {1024}, costs);
  }
};

// A pass of a micro-batch takes the same time on every stage, all of it in the first kernel.
GivenCosts equal_passes(double forward, double backward) {
  GivenCosts costs;
  costs.op = [=](const PlacedProgram& program, int segment, int op) {
    const auto& ops = program.segment(segment).ops;
    const auto first = std::find_if(ops.begin(), ops.end(),
                                    [](const PlacedOp& placed) { return placed.op.def->trait() == OpTrait::kernel; });
    if (first - ops.begin() != op) return 0.0;
    const Phase phase = program.segment(segment).phase;
    return phase == Phase::forward ? forward : phase == Phase::backward ? backward : 0.0;
  };
  return costs;
}

}  // namespace

TEST_CASE("the bubble of equal stages with free messages is (p - 1) / (m + p - 1)") {
  const int stages = GENERATE(2, 3, 4, 8), micro_batches = GENERATE(1, 4, 8, 20);
  const auto schedule = GENERATE(PipelineSchedule::gpipe, PipelineSchedule::one_forward_one_backward);
  const Pipeline pipeline(stages, micro_batches, schedule);
  const SimulatedStep step = pipeline.simulate(equal_passes(1, 2));
  CAPTURE(stages, micro_batches, schedule == PipelineSchedule::gpipe);
  CHECK(step.seconds == Approx(3.0 * (micro_batches + stages - 1)));
  CHECK(step.phases().compute == Approx(3.0 * micro_batches));
  CHECK(step.phases().communication == Approx(0).margin(1e-9));
  CHECK(step.phases().bubble / step.seconds == Approx((stages - 1.0) / (micro_batches + stages - 1)));
}

TEST_CASE("messages make a pipeline slower, at most by the sum of their times") {
  const auto schedule = GENERATE(PipelineSchedule::gpipe, PipelineSchedule::one_forward_one_backward);
  constexpr int stages = 4, micro_batches = 8;
  const Pipeline pipeline(stages, micro_batches, schedule);
  GivenCosts costs = equal_passes(1, 2);
  double before = pipeline.simulate(costs).seconds;
  for (const double seconds : {0.01, 0.1, 0.5, 2.0}) {
    costs.traffic = [=](const Traffic& traffic) {
      return traffic.kind == Communication::Kind::send ? TrafficSeconds{0, seconds} : TrafficSeconds{};
    };
    const SimulatedStep step = pipeline.simulate(costs);
    CHECK(step.seconds > before);
    CHECK(step.seconds <= 3.0 * (micro_batches + stages - 1) + 2 * seconds * micro_batches * (stages - 1) + 1e-9);
    for (const StepSeconds& parts : step.stages) CHECK(parts.total() == Approx(step.seconds));
    before = step.seconds;
  }
}

TEST_CASE("the slowest stage determines the time of a step") {
  constexpr int stages = 3, micro_batches = 12;
  const Pipeline pipeline(stages, micro_batches, PipelineSchedule::gpipe);
  GivenCosts costs = equal_passes(1, 1);
  const auto equal = costs.op;
  const PlacedProgram* slow = &pipeline.compiled[1].programs[0];
  costs.op = [&](const PlacedProgram& program, int segment, int op) {
    return (&program == slow ? 2 : 1) * equal(program, segment, op);
  };
  // The slow stage computes both passes of every micro-batch; filling and emptying the pipeline adds both passes of the
  // two other stages.
  CHECK(pipeline.simulate(costs).seconds == Approx(2 * (2.0 * micro_batches + 2)));
}

}  // namespace trainctl::pipeline_test
