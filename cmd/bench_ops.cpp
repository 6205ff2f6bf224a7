// trainctl bench ops: every op of a step with its rate and its share of the machine's measured peaks.
#include <cstdio>

#include "cmd/bench.h"
#include "cmd/job.h"
#include "cmd/table.h"
#include "core/base/clock.h"
#include "core/base/format.h"
#include "core/base/json.h"
#include "core/base/median.h"
#include "core/exec/op_recorder.h"
#include "io/loader/data.h"
#include "parallel/comm/text.h"

namespace trainctl {
namespace {

void print(const std::vector<OpCost>& costs, const Peaks& peaks, double sum, double step) {
  using Align = Table::Align;
  Table table({{"segment"},
               {"layer"},
               {"op"},
               {"time", Align::right},
               {"share", Align::right},
               {"GFLOP/s", Align::right},
               {"of peak", Align::right},
               {"GB/s", Align::right},
               {"of peak", Align::right},
               {"implementation"}});
  for (const OpCost& cost : costs) {
    const Segment& segment = cost.op.program->program.segments[static_cast<std::size_t>(cost.op.segment)];
    const Op& op = cost.op.what();
    const double rate = cost.flops / cost.median_seconds / 1e9;
    const double bandwidth = static_cast<double>(cost.bytes) / cost.median_seconds / 1e9;
    const bool bfloat16 =
        !op.inputs.empty() && cost.op.program->layouts[static_cast<std::size_t>(op.inputs[0])].dtype == DType::bfloat16;
    const double peak = bfloat16 ? peaks.bfloat16_gflops : peaks.float32_gflops;
    table.add({segment.name, op.name, std::string(op.def->kind()), seconds_text(cost.median_seconds),
               format("{:.1f} %", 100 * cost.median_seconds / sum), cost.flops > 0 ? format("{:.1f}", rate) : "",
               cost.flops > 0 ? format("{:.0f} %", 100 * rate / peak) : "", format("{:.1f}", bandwidth),
               format("{:.0f} %", 100 * bandwidth / peaks.triad_gb_per_s), cost.op.how().implementation});
  }
  std::fputs(table.text().c_str(), stdout);
  std::printf(
      "sum of ops %s, step %s (%.2f x); peaks of this rank: float32 %.0f GFLOP/s, bfloat16 %.0f GFLOP/s, triad %.1f "
      "GB/s\n",
      seconds_text(sum).c_str(), seconds_text(step).c_str(), step / sum, peaks.float32_gflops, peaks.bfloat16_gflops,
      peaks.triad_gb_per_s);
}

void print_json(const std::vector<OpCost>& costs, const Peaks& peaks, double step) {
  Json ops = Json::array();
  for (const OpCost& cost : costs) {
    const Op& op = cost.op.what();
    ops.push_back({{"segment", cost.op.program->program.segments[static_cast<std::size_t>(cost.op.segment)].name},
                   {"layer", op.name},
                   {"op", op.def->kind()},
                   {"seconds", cost.median_seconds},
                   {"flops", cost.flops},
                   {"bytes", cost.bytes},
                   {"implementation", cost.op.how().implementation}});
  }
  std::puts(Json{{"step_seconds", step},
                 {"ops", ops},
                 {"peaks",
                  {{"float32_gflops", peaks.float32_gflops},
                   {"bfloat16_gflops", peaks.bfloat16_gflops},
                   {"triad_gb_per_s", peaks.triad_gb_per_s}}}}
                .dump()
                .c_str());
}

}  // namespace

int bench_ops(const RunSpec& spec, const BenchRequest& request, RankContext& context) {
  RankDevice device = open_device(spec, context);
  const Peaks peaks = device.backend->peaks();
  const Data data(spec.data, spec.seed);
  Job job(spec, data.info(), device, context.world, {}, "");
  initialize_engine(spec, job);
  const auto source =
      data.training(spec.train.global_batch(context.world.size()), job.share(), {spec.seed, 0, 0}, context.threads);
  const Batch& batch = source->next();
  const int program = job.programs().training(batch.count);

  OpRecorder recorder;
  StepResult result;
  std::vector<double> steps;
  const auto run_until = [&](double deadline) {
    do {
      for (std::int64_t i = 0; i < 8; ++i) {
        const double start = seconds_now();
        job.engine().run(program, batch, {1e-6, i, false}, result);
        steps.push_back(seconds_now() - start);
      }
    } while (
        any_rank(context.world.rank() == 0 && seconds_now() < deadline, context.world.communicator(), device.host));
  };
  run_until(seconds_now() + std::min(1.0, request.seconds / 4));
  steps.clear();
  run_until(seconds_now() + request.seconds / 2);
  const double step = median(steps);
  job.engine().set_observer(&recorder);
  run_until(seconds_now() + request.seconds / 2);
  if (context.world.rank() != 0) return 0;

  const std::vector<OpCost> costs = op_costs(recorder.runs());
  double sum = 0;
  for (const OpCost& cost : costs) sum += cost.median_seconds;
  request.json ? print_json(costs, peaks, step) : print(costs, peaks, sum, step);
  return 0;
}

}  // namespace trainctl
