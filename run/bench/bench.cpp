// Builds what a config trains, and measures a part of it.
#include "run/bench/bench.h"

#include <optional>
#include <utility>

#include "core/exec/interfaces/forwarded_source.h"
#include "io/loader/batches/loader.h"
#include "io/loader/bench.h"
#include "io/loader/data.h"
#include "parallel/bench/ceilings.h"
#include "parallel/bench/collectives.h"
#include "parallel/bench/ops.h"
#include "parallel/bench/step.h"
#include "parallel/launch/ranks/run_rank.h"
#include "run/job/job.h"
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

}  // namespace

std::string bench(const RunSpec& config, BenchSubject subject, double seconds, bool json, RankContext& context) {
  const auto shown = [&context, json](const auto&... result) {
    return context.world.rank() != 0 ? "" : json ? to_json(result...) : to_text(result...);
  };
  World& world = context.world;
  RankDevice device = open_device(config.cluster, config.train, config.strategy, context);
  if (subject == BenchSubject::communication) {
    context.end_start();
    // Messages are measured between GPUs alone: in a host's shared memory an all-reduce is faster than they are.
    return shown(bench_communication(device.communicator(world), *device.backend, device.peers != nullptr, seconds));
  }
  std::optional<Ceilings> ceilings;  // measured before the run allocates the device's memory
  if (subject == BenchSubject::ops) ceilings = measure_ceilings(*device.backend, context.threads);
  const Data data(config.data, config.seed, data_use(config));
  RunSpec spec = config;
  spec.checkpoint.background = false;  // nothing is saved
  if (spec.strategy.automatic) spec.strategy = choose_strategy(spec, data.info(), device, context);
  spec = with_shares(std::move(spec), data, device, context, {});
  Job job(spec, data.info(), device, world, {}, "");
  initialize_engine(spec, job);
  context.end_start();
  if (subject == BenchSubject::data) {
    return shown(bench_data_and_step(spec, data, job, device, context, seconds));
  }
  const auto source = data.training(spec.train.global_batch(world.size()), job.division(), {spec.seed, 0, 0},
                                    context.threads, job.target_encodings(), job.batch_memory());
  const BenchedRun run{job.engine(), job.programs(), *source, world.communicator(), device.host};
  if (ceilings) return shown(bench_ops(run, seconds), *ceilings);
  return shown(bench_step(run, device.backend->asynchronous(), seconds));
}

}  // namespace trainctl
