// What a plan measures: the ops of each program, communication, the loader.
#include "cmd/measuring.h"

#include <algorithm>

#include "core/backend/select.h"
#include "core/base/format.h"
#include "core/base/log.h"
#include "io/kernels/kernel_cache.h"
#include "io/kernels/user_cache.h"
#include "io/metrics/count_progress.h"
#include "parallel/comm/solo.h"
#include "parallel/comm/text.h"
#include "parallel/launch/report.h"
#include "parallel/plan/alternatives.h"
#include "parallel/plan/measured/measure_communication.h"
#include "parallel/plan/measured/measure_loading.h"
#include "parallel/plan/measured/measure_step.h"
#include "parallel/plan/measured/measured_costs.h"
#include "parallel/plan/this_machine.h"
#include "parallel/trainer/agreement.h"
#include "parallel/trainer/batch_sizes.h"

namespace trainctl {
namespace {

// Seconds of measuring steps: for each program of the stated strategy, for each of an alternative, and for all of them
// where there are many.
constexpr double stated_seconds = 2, other_seconds = 0.6, least_seconds = 0.1, all_seconds = 30;
constexpr double loading_seconds = 0.5;

CachedFile file_of(const std::string& fingerprint) {
  return {"measurements", fingerprint, "measurements", "this machine is measured again"};
}

Measurements load_measurements(const std::string& fingerprint) {
  Measurements measurements;
  load_cached(file_of(fingerprint), [&](const std::string& text) { measurements.add_file(text); });
  return measurements;
}

// What loading depends on, beside the samples of a batch.
std::string data_text(const RunSpec& spec) { return to_yaml(Value<DataOptions>::write(spec.data)); }

// One rank of each stage of a planned run, as parallel/plan/prediction.h takes them.
std::vector<RunPrograms> stage_programs(const PlannedRuns& runs, const RunSpec& spec, const Backend& backend,
                                        BatchSizes& sizes) {
  const Strategy strategy = strategy_for(spec, runs.info, runs.ranks, backend);
  sizes = batch_sizes(spec.train, spec.strategy, runs.info, runs.ranks);
  if (&spec != &runs.specs.front()) {  // an alternative is compared by its full step
    sizes.training_last = sizes.training_resumed_last = sizes.evaluation = sizes.evaluation_last = 0;
  }
  std::vector<RunPrograms> stages;
  const Mesh& mesh = strategy.mesh;
  for (int stage = 0; stage < mesh.pipeline; ++stage) {
    stages.push_back(
        build_programs(spec, runs.info, strategy, sizes, mesh.rank({mesh.data - 1, stage, mesh.tensor - 1})));
  }
  return stages;
}

// Calls body(spec, stages, sizes) for every planned run that the network takes.
template <class Body>
void for_runs(const PlannedRuns& runs, const Backend& backend, Body body) {
  for (const RunSpec& spec : runs.specs) {
    BatchSizes sizes;
    std::vector<RunPrograms> stages;
    try {
      stages = stage_programs(runs, spec, backend, sizes);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::config && error.kind() != ErrorKind::internal) throw;
      continue;
    }
    body(spec, stages, sizes);
  }
}

// What is to be measured, beside so many ranks at once.
struct Missing {
  int programs = 0;
  bool communication = false;
  bool loading = false;

  bool any() const { return programs > 0 || communication || loading; }
};

Missing find_missing(const PlannedRuns& runs, int at_once, Backend& backend, KernelChoices choices,
                     const Measurements& measurements) {
  choices.stop_timing();
  Missing missing{.communication = at_once > 1 && !has_communication(measurements, at_once)};
  for_runs(runs, backend, [&](const RunSpec& spec, const std::vector<RunPrograms>& stages, const BatchSizes& sizes) {
    for (const RunPrograms& stage : stages) {
      const std::size_t before = choices.assumed();
      const Compiled compiled = compile(stage.programs(), backend, choices);
      const auto training = static_cast<std::size_t>(stage.training(sizes.training));
      const bool known = choices.assumed() == before && has_step(measurements, at_once, compiled.programs[training]);
      missing.programs += known ? 0 : 1;
      const std::int64_t samples = share_of(sizes.training, stage.rank()).count;
      missing.loading = missing.loading || measurements.find(loading_key(at_once, data_text(spec), samples)) == nullptr;
    }
  });
  return missing;
}

// Where ranks meet while they measure.
struct Together {
  Communicator& hosts;
  Communicator& devices;
  int threads = 1;
};

class Measuring {
 public:
  Measuring(const PlannedRuns& runs, Backend& backend, const Together& together)
      : runs_(runs), backend_(backend), together_(together), progress_("measuring this machine", 0) {
    const std::string fingerprint = backend.fingerprint();
    if (is_first()) choices_ = load_kernel_choices(fingerprint);
    if (is_first()) measurements_ = load_measurements(fingerprint);
    const std::string kept = broadcast_text(measurements_.file_text(), 0, together.hosts, host_);
    if (!is_first()) measurements_.add_file(kept);
    choices_.watch_timing([this](const std::string&) { progress_.next(); });
  }

  void run() {
    KernelChoices known;
    known.add(broadcast_text(choices_.text(), 0, together_.hosts, host_));
    const Missing missing = find_missing(runs_, at_once(), backend_, known, measurements_);
    seconds_ = std::max(all_seconds / std::max(missing.programs, 1), least_seconds);
    if (missing.communication) {
      measurements_.add(measure_communication(together_.devices, backend_, [this] { progress_.next(); }));
    }
    for_runs(runs_, backend_,
             [&](const RunSpec& spec, const std::vector<RunPrograms>& stages, const BatchSizes& sizes) {
               KernelChoices agreed = agree_on_choices(choices_, stages, backend_, together_.hosts, host_);
               for (const RunPrograms& stage : stages) measure(spec, stage, sizes, agreed);
             });
    if (missing.loading) measure_data();
    if (!is_first()) return;
    keep_kernel_choices(backend_.fingerprint(), choices_);
    keep_cached(file_of(backend_.fingerprint()), measurements_.file_text());
  }

 private:
  bool is_first() const { return together_.hosts.rank() == 0; }
  int at_once() const { return together_.hosts.size(); }

  void measure(const RunSpec& spec, const RunPrograms& stage, const BatchSizes& sizes, KernelChoices& choices) {
    const Compiled compiled = compile(stage.programs(), backend_, choices);
    const int program = stage.training(sizes.training);
    if (has_step(measurements_, at_once(), compiled.programs[static_cast<std::size_t>(program)])) return;
    const std::int64_t free = memory_of_rank(spec.cluster, backend_, at_once()).bytes;
    const bool unfit = free > 0 && compiled.memory.total() > free;
    if (any_rank(unfit, together_.hosts, host_)) return;
    progress_.next();
    const ProgramSpec programs = program_spec(spec, runs_.info);
    const double most = &spec == &runs_.specs.front() ? stated_seconds : other_seconds;
    measurements_.add(measure_step({compiled, program, stage.rank(), programs}, backend_, together_.hosts,
                                   together_.devices, std::min(seconds_, most)));
  }

  // Nothing where the data is not at hand.
  void measure_data() {
    const RunSpec& stated = runs_.specs.front();
    std::optional<Data> data;
    try {
      data.emplace(stated.data, stated.seed, data_use(stated));
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::data) throw;
    }
    if (any_rank(!data, together_.hosts, host_)) return;
    for_runs(
        runs_, backend_, [&](const RunSpec& spec, const std::vector<RunPrograms>& stages, const BatchSizes& sizes) {
          const RunPrograms& stage = stages.front();
          const std::string key = loading_key(at_once(), data_text(spec), share_of(sizes.training, stage.rank()).count);
          if (measurements_.find(key) != nullptr) return;
          progress_.next();
          const auto source = data->training(sizes.training, stage.rank(), {spec.seed, 0, 0}, together_.threads,
                                             stage.programs().front().target_forms);
          measurements_.record(key, {measure_loading(*source, together_.hosts, loading_seconds)});
        });
  }

  const PlannedRuns& runs_;
  Backend& backend_;
  Together together_;
  ImmediateStream host_;
  CountProgress progress_;
  KernelChoices choices_;  // of rank 0
  Measurements measurements_;
  double seconds_ = stated_seconds;  // of measuring a program, at most
};

}  // namespace

PlannedRuns planned_runs(const RunSpec& spec, int ranks, const DataInfo& info) {
  PlannedRuns runs{{spec}, ranks, info};
  runs.specs.front().strategy.automatic = false;
  const bool shares = !spec.train.optimizer.as<OptimizerOptions>().by_parameter();  // else it wants whole parameters
  for (const StrategyOptions& options : alternatives(runs.specs.front().strategy, ranks, ranks)) {
    if (options.shard != Shard::none && !shares) continue;
    runs.specs.push_back(spec);
    runs.specs.back().strategy = options;
  }
  return runs;
}

int measured_at_once(int ranks, const Backend& backend) {
  const int places = backend.on_host() ? find_cores(Variables::of_process()).usable
                                       : std::max(1, static_cast<int>(find_gpus("auto").gpus.size()));
  return std::min(ranks, places);
}

std::unique_ptr<Costs> measured_costs(const PlannedRuns& runs, int at_once, Backend& backend, int threads) {
  const RunSpec& stated = runs.specs.front();
  const MeasuredUse use{runs.ranks, at_once, data_text(stated), backend.on_host()};
  Measurements measurements = load_measurements(backend.fingerprint());
  std::unique_ptr<Costs> estimate;
  const KernelChoices choices = load_kernel_choices(backend.fingerprint());
  if (find_missing(runs, at_once, backend, choices, measurements).programs > 0) {
    estimate = costs_of_this_machine(backend, threads, stated.train.tf32);
  }
  return std::make_unique<MeasuredCosts>(std::move(measurements), use, std::move(estimate));
}

int complete_measurements(const PlannedRuns& runs, const LaunchPlan& launch, Backend& backend,
                          const CommonOptions& common, const LaunchFlags& flags, const Situation& situation) {
  const int at_once = measured_at_once(runs.ranks, backend);
  const std::string fingerprint = backend.fingerprint();
  if (!find_missing(runs, at_once, backend, load_kernel_choices(fingerprint), load_measurements(fingerprint)).any()) {
    return 0;
  }
  LaunchFlags own = flags;
  own.ranks = std::to_string(at_once);
  const std::optional<LaunchPlan> plan =
      plan_ranks(runs.specs.front().cluster, own, launched_config(common), situation);
  if (plan) {
    const Supervised ranks = run_ranks(*plan, {false, true});
    return ranks.end.exit_code == 0 ? 0 : report(ranks.end, common.json, situation);
  }
  const auto hosts = solo_communicator(), devices = solo_communicator(backend);
  Measuring(runs, backend, {*hosts, *devices, launch.threads}).run();
  return 0;
}

void measure_together(const PlannedRuns& runs, RankDevice& device, RankContext& context) {
  World& world = context.world;
  Measuring(runs, *device.backend, {world.communicator(), device.communicator(world), context.threads}).run();
}

}  // namespace trainctl
