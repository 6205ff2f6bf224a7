// trainctl bench ops: every op of a step with its rate and its share of the rank's ceilings, measured in the same run.
#include "cmd/bench.h"
#include "cmd/ceilings.h"
#include "cmd/job.h"
#include "cmd/table.h"
#include "core/base/clock.h"
#include "core/base/format.h"
#include "core/base/json.h"
#include "core/base/json_fwd.h"
#include "core/base/median.h"
#include "core/exec/observe/op_recorder.h"
#include "io/loader/data.h"
#include "parallel/comm/text.h"
#include "parallel/launch/report.h"

namespace trainctl {
namespace {

// The rates of an op, and their shares of the ceilings.
struct Rates {
  double gflops = 0, of_gflops = 0, gb_per_s = 0, of_gb_per_s = 0;
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

void print(const std::vector<OpCost>& costs, const Ceilings& ceilings, double sum, double step) {
  using Align = Table::Align;
  Table table({{"segment"},
               {"layer"},
               {"op"},
               {"time", Align::right},
               {"share", Align::right},
               {"GFLOP/s", Align::right},
               {"of ceiling", Align::right},
               {"GB/s", Align::right},
               {"of ceiling", Align::right},
               {"implementation"}});
  for (const OpCost& cost : costs) {
    const Op& op = cost.op.what();
    const Rates rates = rates_of(cost, ceilings);
    table.add({segment_of(cost), op.name, std::string(op.def->kind()), seconds_text(cost.median_seconds),
               format("{:.1f} %", 100 * cost.median_seconds / sum),
               cost.work.flops > 0 ? format("{:.1f}", rates.gflops) : "",
               cost.work.flops > 0 ? format("{:.0f} %", 100 * rates.of_gflops) : "", format("{:.1f}", rates.gb_per_s),
               format("{:.0f} %", 100 * rates.of_gb_per_s), cost.op.how().implementation});
  }
  std::string text = format(
      "ceilings measured on this rank: products {:.0f} GFLOP/s in float32 and {:.0f} in half precision; memory {:.1f} "
      "GB/s in a large copy and {:.1f} in a triad, of which the larger counts; up to {:.1f} in copies that fit in "
      "cache, "
      "the ceiling of ops of their size\n",
      ceilings.peaks.float32_gflops, ceilings.peaks.bfloat16_gflops, ceilings.copy_gb_per_s,
      ceilings.peaks.triad_gb_per_s, ceilings.cached_gb_per_s());
  text += table.text();
  text += format("sum of ops {}, step {} ({:.2f} x)\n", seconds_text(sum), seconds_text(step), step / sum);
  answer(text);
}

void print_json(const std::vector<OpCost>& costs, const Ceilings& ceilings, double step) {
  Json ops = Json::array();
  for (const OpCost& cost : costs) {
    const Op& op = cost.op.what();
    const Rates rates = rates_of(cost, ceilings);
    ops.push_back({{"segment", segment_of(cost)},
                   {"layer", op.name},
                   {"op", op.def->kind()},
                   {"seconds", cost.median_seconds},
                   {"flops", cost.work.flops},
                   {"bytes", cost.work.bytes},
                   {"of_compute_ceiling", rates.of_gflops},
                   {"of_memory_ceiling", rates.of_gb_per_s},
                   {"implementation", cost.op.how().implementation}});
  }
  answer(json_line({{"step_seconds", step},
                    {"ops", ops},
                    {"peaks",
                     {{"float32_gflops", ceilings.peaks.float32_gflops},
                      {"bfloat16_gflops", ceilings.peaks.bfloat16_gflops},
                      {"triad_gb_per_s", ceilings.peaks.triad_gb_per_s},
                      {"copy_gb_per_s", ceilings.copy_gb_per_s},
                      {"cached_copy_gb_per_s", ceilings.cached_gb_per_s()}}}}));
}

}  // namespace

int bench_ops(const RunSpec& spec, const BenchRequest& request, RankContext& context) {
  RankDevice device = open_device(spec, context);
  const Ceilings ceilings = measure_ceilings(*device.backend, context.threads);
  const Data data(spec.data, spec.seed, data_use(spec));
  Job job(spec, data.info(), device, context.world, {}, "");
  initialize_engine(spec, job);
  const auto source = data.training(spec.train.global_batch(context.world.size()), job.rank(), {spec.seed, 0, 0},
                                    context.threads, job.target_form(), job.batch_memory());
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
  request.json ? print_json(costs, ceilings, step) : print(costs, ceilings, sum, step);
  return 0;
}

}  // namespace trainctl
