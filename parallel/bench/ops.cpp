// Measures ops and formats the results.
#include "parallel/bench/ops.h"

#include <algorithm>

#include "core/base/clock.h"
#include "core/base/format.h"
#include "core/base/json.h"
#include "core/base/json_fwd.h"
#include "core/base/median.h"
#include "core/base/table.h"
#include "parallel/bench/ceilings.h"
#include "parallel/bench/step.h"
#include "parallel/strategies/programs.h"

namespace trainctl {
namespace {

// The rates of an op, and their fractions of the ceilings.
struct Rates {
  double gflops = 0, gflops_fraction = 0, gb_per_s = 0, gb_per_s_fraction = 0;
};

Rates rates_of(const OpCost& cost, const Ceilings& ceilings) {
  const Op& op = cost.op.what();
  const DType dtype = op.inputs.empty() ? DType::float32 : cost.op.program->tensor(op.inputs[0]).layout.dtype;
  const double gflops = cost.work.flops / cost.median_seconds / 1e9;
  const double gb_per_s = static_cast<double>(cost.work.bytes) / cost.median_seconds / 1e9;
  return {gflops, gflops / ceilings.gflops(dtype), gb_per_s, gb_per_s / ceilings.gb_per_s(cost.work.bytes)};
}

std::string segment_of(const OpCost& cost) {
  const PlacedSegment& segment = cost.op.program->segment(cost.op.segment);
  return std::string(name_of(segment.phase, segment.variant));
}

}  // namespace

OpBench bench_ops(const BenchedRun& run, double seconds) {
  const Batch& batch = run.source.next();
  const int program = run.programs.training(batch.global_count);
  StepResult result;
  std::vector<double> steps;
  std::int64_t number = 0;
  const auto steps_until = [&](double deadline) {
    run_steps_until(deadline, run, [&] {
      const double start = seconds_now();
      run.engine.run(program, batch, {1e-6, number++, false}, result);
      steps.push_back(seconds_now() - start);
    });
  };
  steps_until(seconds_now() + std::min(1.0, seconds / 4));
  steps.clear();
  steps_until(seconds_now() + seconds / 2);
  const double step_seconds = median(steps);
  OpRecorder recorder;
  run.engine.set_observer(&recorder);
  steps_until(seconds_now() + seconds / 2);
  run.engine.set_observer(nullptr);
  return {op_costs(recorder.runs()), step_seconds};
}

std::string to_text(const OpBench& bench, const Ceilings& ceilings) {
  double sum = 0;
  for (const OpCost& cost : bench.costs) sum += cost.median_seconds;
  using Align = TextTable::Align;
  TextTable table({{"segment"},
                   {"layer"},
                   {"op"},
                   {"time", Align::right},
                   {"spread", Align::right},
                   {"share", Align::right},
                   {"GFLOP/s", Align::right},
                   {"of ceiling", Align::right},
                   {"GB/s", Align::right},
                   {"of ceiling", Align::right},
                   {"implementation"}});
  for (const OpCost& cost : bench.costs) {
    const Op& op = cost.op.what();
    const Rates rates = rates_of(cost, ceilings);
    table.add({segment_of(cost), op.name, std::string(op.def->kind()), seconds_text(cost.median_seconds),
               format("{:.0f} %", 100 * cost.spread), format("{:.1f} %", 100 * cost.median_seconds / sum),
               cost.work.flops > 0 ? format("{:.1f}", rates.gflops) : "",
               cost.work.flops > 0 ? format("{:.0f} %", 100 * rates.gflops_fraction) : "",
               format("{:.1f}", rates.gb_per_s), format("{:.0f} %", 100 * rates.gb_per_s_fraction),
               cost.op.how().implementation});
  }
  std::string text = format(
      "ceilings measured on this rank: products {:.0f} GFLOP/s in float32 and {:.0f} in half precision; memory {:.1f} "
      "GB/s in a large copy and {:.1f} in a triad (the larger value is the ceiling), up to {:.1f} in copies that fit "
      "in cache (the ceiling of ops of that size)\n",
      ceilings.peaks.float32_gflops, ceilings.peaks.bfloat16_gflops, ceilings.copy_gb_per_s,
      ceilings.peaks.triad_gb_per_s, ceilings.cached_gb_per_s());
  text += table.text();
  const auto exceeds = [&](const OpCost& cost) { return rates_of(cost, ceilings).gflops_fraction > 1; };
  if (std::ranges::any_of(bench.costs, exceeds)) {
    text +=
        "GFLOP/s count all products of a direct sum, also those with padding; kernels that need fewer products, such "
        "as Winograd's convolutions, may exceed the ceiling\n";
  }
  text +=
      format("sum of ops {}, step {} ({:.2f} x); an op's time is the median, its spread the width of the middle half\n",
             seconds_text(sum), seconds_text(bench.step_seconds), bench.step_seconds / sum);
  return text;
}

std::string to_json(const OpBench& bench, const Ceilings& ceilings) {
  Json ops = Json::array();
  for (const OpCost& cost : bench.costs) {
    const Op& op = cost.op.what();
    const Rates rates = rates_of(cost, ceilings);
    ops.push_back({{"segment", segment_of(cost)},
                   {"layer", op.name},
                   {"op", op.def->kind()},
                   {"seconds", cost.median_seconds},
                   {"spread", cost.spread},
                   {"flops", cost.work.flops},
                   {"bytes", cost.work.bytes},
                   {"of_compute_ceiling", rates.gflops_fraction},
                   {"of_memory_ceiling", rates.gb_per_s_fraction},
                   {"implementation", cost.op.how().implementation}});
  }
  return json_line({{"step_seconds", bench.step_seconds},
                    {"ops", ops},
                    {"peaks",
                     {{"float32_gflops", ceilings.peaks.float32_gflops},
                      {"bfloat16_gflops", ceilings.peaks.bfloat16_gflops},
                      {"triad_gb_per_s", ceilings.peaks.triad_gb_per_s},
                      {"copy_gb_per_s", ceilings.copy_gb_per_s},
                      {"cached_copy_gb_per_s", ceilings.cached_gb_per_s()}}}});
}

}  // namespace trainctl
