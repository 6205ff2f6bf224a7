// Measures the ops of each program, the communication and the loader, for a plan.
#include "run/planning/measuring.h"

#include <algorithm>
#include <memory>

#include "core/backend/backend.h"
#include "core/backend/select.h"
#include "core/base/clock.h"
#include "core/base/format.h"
#include "core/base/log.h"
#include "core/base/table.h"
#include "io/loader/data.h"
#include "io/metrics/count_progress.h"
#include "parallel/bench/ceilings.h"
#include "parallel/comm/communicators.h"
#include "parallel/comm/text.h"
#include "parallel/launch/plan.h"
#include "parallel/launch/ranks/run_rank.h"
#include "parallel/launch/start_ranks.h"
#include "parallel/launch/supervisor/outcome.h"
#include "parallel/plan/costs.h"
#include "parallel/plan/measured/measure_communication.h"
#include "parallel/plan/measured/measure_loading.h"
#include "parallel/plan/measured/measure_step.h"
#include "parallel/plan/measured/measured_costs.h"
#include "parallel/plan/measured/repeated.h"
#include "parallel/plan/roofline.h"
#include "parallel/trainer/agreement.h"
#include "run/job/device.h"
#include "run/job/job.h"
#include "run/job/kept_kernels.h"
#include "run/job/user_cache.h"
#include "run/planning/planned_runs.h"

namespace trainctl {
namespace {

// The costs of a rank with `threads` threads on this machine, measured for a few seconds.
std::unique_ptr<Costs> costs_of_this_machine(Backend& backend, int threads, bool tf32) {
  const Ceilings ceilings = measure_ceilings(backend, threads);
  Machine machine;
  machine.device.kind = backend.on_host() ? MachineKind::cpu : MachineKind::gpu;
  machine.device.float32 = ceilings.peaks.float32_product_gflops / 1e3;
  machine.device.bfloat16 = ceilings.peaks.bfloat16_product_gflops / 1e3;
  machine.device.memory_bandwidth = ceilings.peaks.triad_gb_per_s;
  machine.device.compute_efficiency = machine.device.memory_efficiency = 1;  // they are measured
  machine.device.kernel_overhead = 1;
  machine.node.link = ceilings.copy_gb_per_s / 2;  // that rate counts the bytes read and the bytes written
  machine.node.link_latency = 2;
  return std::make_unique<RooflineCosts>(machine, RooflineUse{.tf32 = tf32});
}

// Seconds to measure steps for: each program of the configured strategy, each program of an alternative, at least each
// program, and at most all of them.
constexpr double configured_seconds = 2, other_seconds = 0.6, least_seconds = 0.1, all_seconds = 30;
constexpr double loading_seconds = 0.5;
// After the first time, measurements are short and not repeated until results agree; after the second one, alternatives
// that are not measured yet are left out.
constexpr double calm_seconds = 60, longest_seconds = 300;

CachedFile file_of(const std::string& fingerprint) {
  return {"measurements", fingerprint, "measurements", "this machine is measured again"};
}

Measurements load_measurements(const std::string& fingerprint) {
  Measurements measurements;
  load_cached(file_of(fingerprint), [&](const std::string& text) { measurements.add_file(text); });
  return measurements;
}

// The text that identifies a measurement of loading, apart from the number of samples in a batch.
std::string data_text(const RunSpec& spec) { return to_yaml(Value<DataOptions>::write(spec.data)); }

// The number of samples of a full batch that the stage's rank has.
std::int64_t samples_of(const PlannedRun& run, const RunPrograms& stage) {
  return share_of(run.sizes.training, run.sizes.training_division(stage.rank())).count;
}

// Request, backend and choices must outlive the compiler.
RankCompiler compiler_of(const PlanRequest& request, Backend& backend, KernelChoices& choices) {
  return [&request, &backend, &choices](const std::vector<Program>& programs, const BatchDivision& division) {
    return compile_rank(programs, request.spec, request.data, division, backend, choices);
  };
}

// Calls body(run, true) for the run of the config, if that has a strategy, and body(run, false) for each alternative.
void for_runs(const PlanRequest& request, const std::function<void(PlannedRun run, bool configured)>& body) {
  if (!request.spec.strategy.automatic) body(configured_run(request), true);
  for_alternatives(request, [&body](const PlanRequest&, PlannedRun run) { body(std::move(run), false); });
}

// What is still to be measured.
struct Missing {
  int programs = 0;
  bool communication = false;
  bool loading = false;
  double spread = 0;  // the largest spread of earlier measurements, if it is wide

  void take(std::optional<double> measured) {
    if (measured.value_or(0) > wide_spread) spread = std::max(spread, *measured);
  }
  bool any() const { return programs > 0 || communication || loading; }
};

Missing find_missing(const PlanRequest& request, int at_once, Backend& backend, KernelChoices choices,
                     const Measurements& measurements) {
  choices.stop_timing();
  Missing missing{.communication = at_once > 1 && !has_communication(measurements, at_once)};
  if (at_once > 1) missing.take(communication_spread(measurements, at_once));
  for_runs(request, [&](PlannedRun run, bool) {
    run = with_recomputed_blocks(request, std::move(run), compiler_of(request, backend, choices));
    for (const RunPrograms& stage : run.stages()) {
      const std::size_t before = choices.assumed();
      const Compiled compiled = compile(stage.programs(), backend, choices);
      const auto training = static_cast<std::size_t>(stage.training(run.sizes.training));
      const bool known = choices.assumed() == before && has_step(measurements, at_once, compiled.programs[training]);
      missing.programs += known ? 0 : 1;
      missing.take(step_spread(measurements, at_once, compiled.programs[training]));
      const std::string loading = loading_key(at_once, data_text(request.spec), samples_of(run, stage));
      missing.loading = missing.loading || !has_loading(measurements, loading);
    }
    for (const RunPrograms& other : run.others()) {
      const std::size_t before = choices.assumed();
      compile(other.programs(), backend, choices);
      missing.programs += choices.assumed() == before ? 0 : 1;
    }
  });
  return missing;
}

// The communicators and threads of ranks that measure together.
struct Together {
  Communicator& hosts;
  Communicator& devices;
  int threads = 1;
};

class Measuring {
 public:
  Measuring(const PlanRequest& request, Backend& backend, const Together& together)
      : request_(request), backend_(backend), together_(together), progress_("measuring this machine", 0) {
    if (is_first()) choices_ = kept_kernels(request.spec, backend);
    if (is_first()) measurements_ = load_measurements(backend.fingerprint());
    const std::string kept = broadcast_text(measurements_.file_text(), 0, together.hosts, host_);
    if (!is_first()) measurements_.add_file(kept);
    choices_.watch_timing([this](const std::string&) { progress_.next(); });
  }

  void run() {
    KernelChoices known;
    known.add(broadcast_text(choices_.text(), 0, together_.hosts, host_));
    const Missing missing = find_missing(request_, at_once(), backend_, known, measurements_);
    seconds_ = std::max(all_seconds / std::max(missing.programs, 1), least_seconds);
    if (is_first() && missing.spread > 0) {
      log::info(
          format("this machine was busy when it was measured before: repeated measurements differed by up to "
                 "{:.0f} %, and are repeated now",
                 100 * missing.spread));
    }
    if (missing.communication) {
      measurements_.add(measure_communication(
          together_.devices, backend_, measurements_, [this] { progress_.next(); }, [this] { return out_of_time(); }));
      spread_ = communication_spread(measurements_, at_once()).value_or(0);
    }
    for_runs(request_, [&](PlannedRun run, bool configured) {
      out_of_time();
      if (!configured && any_took(longest_seconds)) {
        if (is_first() && is_unmeasured(std::move(run))) ++left_out_;
        return;
      }
      KernelChoices agreed = agree_on_kernels(choices_, run.ranks, backend_, together_.hosts, host_).choices;
      if (request_.spec.strategy.recompute == Recompute::automatic) {
        KernelChoices known = agreed;
        known.stop_timing();
        run = with_recomputed_blocks(request_, std::move(run), compiler_of(request_, backend_, known));
        agreed = agree_on_kernels(choices_, run.ranks, backend_, together_.hosts, host_).choices;
      }
      for (const RunPrograms& stage : run.stages()) {
        measure(stage, run.sizes, agreed, std::min(seconds_, configured ? configured_seconds : other_seconds));
      }
    });
    if (missing.loading) measure_data();
    if (!is_first()) return;
    tell_time();
    if (spread_ > wide_spread) {
      log::warning(
          format("this machine is busy: repeated measurements differ by up to {:.0f} %, and the plan's times "
                 "may be wrong by as much; the next plan repeats what differs by more than {:.0f} %",
                 100 * spread_, 100 * wide_spread));
    }
    keep_kernels(request_.spec, backend_, choices_);
    keep_cached(file_of(backend_.fingerprint()), measurements_.file_text());
  }

 private:
  bool is_first() const { return together_.hosts.rank() == 0; }
  // Whether any rank has measured for this time. Collective.
  bool any_took(double seconds) { return any_rank(seconds_now() - begin_ > seconds, together_.hosts, host_); }
  // Whether any rank has measured for calm_seconds. Collective.
  bool out_of_time() {
    if (!out_of_time_) out_of_time_ = any_took(calm_seconds);
    return out_of_time_;
  }
  // Whether a run that fits into memory has a stage whose step is not measured with the kernels that are chosen.
  bool is_unmeasured(PlannedRun run) const {
    KernelChoices choices = choices_;
    choices.stop_timing();
    run = with_recomputed_blocks(request_, std::move(run), compiler_of(request_, backend_, choices));
    for (const RunPrograms& stage : run.stages()) {
      const std::size_t before = choices.assumed();
      const Compiled compiled = compile(stage.programs(), backend_, choices);
      if (!fits(compiled)) return false;
      const auto training = static_cast<std::size_t>(stage.training(run.sizes.training));
      if (choices.assumed() != before || !has_step(measurements_, at_once(), compiled.programs[training])) return true;
    }
    return false;
  }
  // Whether this rank has the memory for what is compiled.
  bool fits(const Compiled& compiled) const {
    const int sharing = backend_.on_host() ? at_once() : 1;  // each rank that measures has a GPU of its own
    const std::int64_t free = memory_of_rank(request_.spec.cluster, backend_, sharing).bytes;
    return free <= 0 || compiled.memory.total() <= free;
  }
  // Warns if the time was over before everything was measured as often as it should be.
  void tell_time() const {
    if (!out_of_time_ && left_out_ == 0) return;
    const std::string left_out =
        left_out_ == 0
            ? ""
            : format("{} {} estimated times, and ", counted(left_out_, "alternative"), left_out_ == 1 ? "has" : "have");
    log::warning(format(
        "measuring this machine took longer than {:.0f} s, so that {}the last measurements were taken only twice; "
        "plan again to measure what is missing or differs by more than {:.0f} %",
        calm_seconds, left_out, 100 * wide_spread));
  }
  int at_once() const { return together_.hosts.size(); }

  void measure(const RunPrograms& stage, const BatchSizes& sizes, KernelChoices& choices, double seconds) {
    const Compiled compiled = compile(stage.programs(), backend_, choices);
    const int program = stage.training(sizes.training);
    if (has_step(measurements_, at_once(), compiled.programs[static_cast<std::size_t>(program)])) return;
    if (any_rank(!fits(compiled), together_.hosts, host_)) return;
    progress_.next();
    const ProgramSpec programs = program_spec(request_.spec, request_.data);
    const Measurements found = measure_step({compiled, program, stage.rank(), programs}, backend_, together_.hosts,
                                            together_.devices, seconds, [this] { return out_of_time(); });
    const PlacedProgram& measured = compiled.programs[static_cast<std::size_t>(program)];
    spread_ = std::max(spread_, step_spread(found, at_once(), measured).value_or(0));
    measurements_.complete(found, wide_spread);
  }

  // Measures loading; does nothing if the data is not available.
  void measure_data() {
    const RunSpec& spec = request_.spec;
    std::optional<Data> data;
    try {
      data.emplace(spec.data, spec.seed, data_use(spec));
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::data) throw;
    }
    if (any_rank(!data, together_.hosts, host_)) return;
    for_runs(request_, [&](const PlannedRun& run, bool configured) {
      if (!configured && any_took(longest_seconds)) return;
      const RunPrograms& stage = run.stages().front();
      const std::string key = loading_key(at_once(), data_text(spec), samples_of(run, stage));
      if (has_loading(measurements_, key)) return;
      progress_.next();
      const auto source =
          data->training(run.sizes.training, run.sizes.training_division(stage.rank()), {spec.seed, 0, 0},
                         together_.threads, stage.programs().front().target_encodings);
      measurements_.record(
          key, measure_loading(*source, together_.hosts, loading_seconds, [this] { return out_of_time(); }));
    });
  }

  const PlanRequest& request_;
  Backend& backend_;
  Together together_;
  ImmediateStream host_;
  CountProgress progress_;
  KernelChoices choices_;  // choices of rank 0
  Measurements measurements_;
  double seconds_ = configured_seconds;  // to measure a program for, at most
  double spread_ = 0;                    // the largest spread of the new measurements
  double begin_ = seconds_now();
  bool out_of_time_ = false;  // equal on all ranks
  int left_out_ = 0;          // number of alternatives that were not measured
};

}  // namespace

int measured_at_once(int ranks, const Backend& backend) {
  const int slots = backend.on_host() ? find_cores(Variables::of_process()).usable
                                      : std::max(1, static_cast<int>(find_gpus("auto").gpus.size()));
  return std::min(ranks, slots);
}

MeasuredTarget measured_target(const PlanRequest& request, int at_once, Backend& backend, int threads) {
  const std::string fingerprint = backend.fingerprint();
  const auto choices = std::make_shared<KernelChoices>(kept_kernels(request.spec, backend));
  choices->stop_timing();
  Measurements measurements = load_measurements(fingerprint);
  std::unique_ptr<Costs> estimate;
  if (find_missing(request, at_once, backend, *choices, measurements).programs > 0) {
    estimate = costs_of_this_machine(backend, threads, request.spec.train.tf32);
  }
  const MeasuredUse use{request.ranks, at_once, data_text(request.spec), backend.on_host()};
  PlanTarget target;
  target.about = fingerprint;
  target.nodes.ranks_per_node = request.ranks_per_node;
  target.memory = request.memory;
  target.costs = std::make_shared<MeasuredCosts>(std::move(measurements), use, std::move(estimate));
  target.compile = [choices, compile = compiler_of(request, backend, *choices)](const std::vector<Program>& programs,
                                                                                const BatchDivision& division) {
    return compile(programs, division);
  };
  return {std::move(target), choices};
}

std::optional<Failure> complete_measurements(const PlanRequest& request, const LaunchPlan& launch, Backend& backend,
                                             const LaunchedConfig& config, const LaunchFlags& flags,
                                             const Situation& situation) {
  const int at_once = measured_at_once(request.ranks, backend);
  const KernelChoices choices = kept_kernels(request.spec, backend);
  if (!find_missing(request, at_once, backend, choices, load_measurements(backend.fingerprint())).any()) return {};
  LaunchFlags own = flags;
  own.ranks = std::to_string(at_once);
  const std::optional<LaunchPlan> plan = plan_ranks(request.spec.cluster, own, config, situation);
  if (plan) {
    const Outcome ranks = run_ranks(*plan, {false, true});
    return ranks.end.exit_code == 0 ? std::nullopt : std::optional(ranks.end);
  }
  const auto hosts = solo_communicator(), devices = solo_communicator(backend);
  Measuring(request, backend, {*hosts, *devices, launch.threads}).run();
  return {};
}

void measure_together(const PlanRequest& request, RankDevice& device, RankContext& context) {
  World& world = context.world;
  Measuring(request, *device.backend, {world.communicator(), device.communicator(world), context.threads}).run();
}

}  // namespace trainctl
