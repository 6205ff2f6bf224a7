// trainctl bench: starts ranks and measures a config's step, ops or data, or the communication between the ranks.
#include <CLI/CLI.hpp>

#include "cmd/common_options.h"
#include "cmd/one_of.h"
#include "cmd/subcommands.h"
#include "core/exec/interfaces/forwarded_source.h"
#include "core/spec/units.h"
#include "io/loader/batches/loader.h"
#include "io/loader/bench.h"
#include "io/loader/data.h"
#include "parallel/bench/ceilings.h"
#include "parallel/bench/collectives.h"
#include "parallel/bench/ops.h"
#include "parallel/bench/step.h"
#include "parallel/launch/plan.h"
#include "parallel/launch/ranks/report.h"
#include "parallel/launch/ranks/run_rank.h"
#include "parallel/launch/start_ranks.h"
#include "run/job/job.h"
#include "run/job/phases.h"
#include "run/planning/auto_strategy.h"
#include "run/planning/shares.h"
#include "run/run_spec.h"

namespace trainctl {
namespace {

// Returns the same batch for every step.
class RepeatedBatch final : public ForwardedSource {
 public:
  // Takes one batch from the source, which must outlive this object and must not be used by others.
  explicit RepeatedBatch(BatchSource& source) : ForwardedSource(source), batch_(source.next()) {
    batch_.waited_seconds = 0;
  }

  const Batch& next() override { return batch_; }

 private:
  Batch batch_;
};

struct BenchOptions {
  CommonOptions common;
  LaunchFlags launch;
  std::string what;
  double seconds = 3;  // to measure for
  int phase = 0;       // counted from 1; 0: the last one
};

// Prints a result on rank 0.
template <class... Result>
void show(const RankContext& context, bool json, const Result&... result) {
  if (context.world.rank() == 0) answer(json ? to_json(result...) : to_text(result...));
}

// Measures the loader of all ranks at the same time, and the training step without it. Collective.
DataBench bench_data_and_step(const RunSpec& spec, const Data& data, Job& job, RankDevice& device, RankContext& context,
                              double seconds) {
  World& world = context.world;
  const LoaderOptions loader =
      data.training_loader(spec.train.global_batch(world.size()), job.division(), {spec.seed, 0, 0}, context.threads,
                           job.target_encodings(), job.batch_memory());
  const auto& split = data.split(SplitKind::training);
  DataBench bench = bench_data(split, loader, 0.75 * seconds, [&] {
    world.communicator().barrier(device.host);
    device.host.synchronize();
  });
  double rates[] = {bench.worker, bench.loader};
  world.communicator().all_reduce({rates, DType::float64, 2}, Reduction::sum, device.host);
  device.host.synchronize();
  bench.worker = rates[0];
  bench.loader = rates[1];
  bench.ranks = world.size();
  const auto source = make_loader(split, loader);
  RepeatedBatch repeated(*source);
  const BenchedRun run{job.engine(), job.programs(), repeated, world.communicator(), device.host};
  bench.step = bench_step(run, device.backend->asynchronous(), 0.25 * seconds).figures.samples_per_second;
  return bench;
}

// Measures the config's step, ops, data or communication, and shows the result. Collective.
int measure(const RunSpec& config, const BenchOptions& options, RankContext& context) {
  const bool json = options.common.json;
  World& world = context.world;
  RankDevice device = open_device(config.cluster, config.train, config.strategy, context);
  if (options.what == "comm") {
    // Messages are measured between GPUs alone: in a host's shared memory an all-reduce is faster than they are.
    show(context, json,
         bench_communication(device.communicator(world), *device.backend, device.peers != nullptr, options.seconds));
    return 0;
  }
  std::optional<Ceilings> ceilings;  // measured before the run allocates the device's memory
  if (options.what == "ops") ceilings = measure_ceilings(*device.backend, context.threads);
  const Data data(config.data, config.seed, data_use(config));
  RunSpec spec = config;
  spec.checkpoint.background = false;  // nothing is saved
  if (spec.strategy.automatic) spec.strategy = choose_strategy(spec, data.info(), device, context);
  spec = with_shares(std::move(spec), data, device, context, {});
  Job job(spec, data.info(), device, world, {}, "");
  initialize_engine(spec, job);
  if (options.what == "data") {
    show(context, json, bench_data_and_step(spec, data, job, device, context, options.seconds));
    return 0;
  }
  const auto source = data.training(spec.train.global_batch(world.size()), job.division(), {spec.seed, 0, 0},
                                    context.threads, job.target_encodings(), job.batch_memory());
  const BenchedRun run{job.engine(), job.programs(), *source, world.communicator(), device.host};
  if (ceilings) {
    show(context, json, bench_ops(run, options.seconds), *ceilings);
  } else {
    show(context, json, bench_step(run, device.backend->asynchronous(), options.seconds));
  }
  return 0;
}

int run_bench(BenchOptions& options) {
  const RunSpec spec = chosen_phase(load_run_spec(options.common, options.launch), options.phase);
  const Situation situation = find_situation(Variables::of_process());
  if (const std::optional<int> code = supervise_ranks(spec.cluster, options.launch, launched_config(options.common),
                                                      situation, {false, options.common.json}))
    return *code;
  return run_as_rank(situation, options.common.json,
                     rank_command("bench " + options.what, Value<RunSpec>::write(spec), spec.cluster, options.launch),
                     [&](RankContext& context) { return measure(spec, options, context); });
}

// A check for CLI11: returns why the text is refused, or "".
std::string check_seconds(const std::string& text) {
  const auto seconds = parse_number(text);
  return seconds && *seconds > 0 && *seconds <= 86400 ? ""
                                                      : "must be a number of seconds, more than 0 and at most 86400";
}

}  // namespace

Subcommand bench_subcommand() {
  return {"bench", "Measures a config's step, its ops, its data, or the communication of its ranks",
          "trainctl bench step mnist.yaml --ranks 2", [](CLI::App& app) {
            auto options = std::make_shared<BenchOptions>();
            app.add_option("what", options->what, "What to measure: step, ops, data or comm")
                ->required()
                ->check(one_of({"step", "ops", "data", "comm"}));
            add_config_options(app, options->common);
            add_output_options(app, options->common);
            add_launch_options(app, options->launch);
            app.add_option("--seconds", options->seconds, "Seconds to measure for; default: 3")->check(check_seconds);
            add_phase_option(app, options->phase);
            return [options] { return run_bench(*options); };
          }};
}

}  // namespace trainctl
