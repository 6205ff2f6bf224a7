// Training on one rank.
#include "cmd/training.h"

#include <cmath>
#include <cstdio>

#include "cmd/gpus.h"
#include "cmd/job.h"
#include "cmd/restore.h"
#include "cmd/timeline.h"
#include "cmd/version.h"
#include "core/base/checked.h"
#include "core/base/format.h"
#include "core/base/log.h"
#include "core/metrics/monitor.h"
#include "io/checkpoint/store.h"
#include "io/loader/data.h"
#include "io/metrics/fan_out.h"
#include "io/metrics/metrics_jsonl.h"
#include "io/metrics/run_directory.h"
#include "parallel/comm/text.h"
#include "parallel/trainer/trainer.h"

namespace trainctl {
namespace {

// What rank 0 alone has: the run directory, what it tells, and the checkpoint to go on from.
struct Lead {
  std::unique_ptr<RunDirectory> directory;
  std::optional<LoadedCheckpoint> checkpoint;
  std::string resumed_from;  // its path
  std::unique_ptr<CheckpointStore> store;
  std::unique_ptr<MetricsFanOut> sink;
};

bool names_a_checkpoint(const std::string& resume) { return resume != "auto" && resume != "never"; }

Lead take_lead(const RunSpec& spec, const TrainingRequest& request) {
  Lead lead;
  lead.directory = std::make_unique<RunDirectory>(
      RunRequest{spec.name, request.run_directory, request.resume != "never", request.config});
  if (lead.directory->is_finished()) return lead;
  if (names_a_checkpoint(request.resume)) {
    lead.checkpoint = load_named_checkpoint(request.resume);
  } else if (lead.directory->resumes()) {
    lead.checkpoint = load_newest_checkpoint(lead.directory->path());
  }
  if (lead.checkpoint) lead.resumed_from = lead.checkpoint->path;
  lead.store = std::make_unique<CheckpointStore>(lead.directory->path(),
                                                 StorePolicy{spec.checkpoint.keep, spec.checkpoint.weights_only});
  lead.sink = std::make_unique<MetricsFanOut>();
  lead.sink->add(std::make_unique<MetricsJsonl>(lead.directory->metrics_path(), spec.log.every));
  const ProgressStyle style = request.quiet ? ProgressStyle::none : request.progress;
  lead.sink->add(std::make_unique<Progress>(style, spec.log.every, request.terminal_columns));
  return lead;
}

// A duration in steps; 0 where it is none.
std::int64_t steps_of(const Duration& duration, std::int64_t steps_per_epoch) {
  const double steps = duration.unit == Duration::Unit::epochs ? duration.amount * static_cast<double>(steps_per_epoch)
                                                               : duration.amount;
  return std::llround(std::clamp(steps, 1.0, 1e18));
}

TrainingPlan training_plan(const RunSpec& spec, const DataInfo& data, int ranks) {
  const std::int64_t batch = spec.train.global_batch(ranks);
  TrainingPlan plan;
  plan.steps_per_epoch = spec.train.steps_per_epoch.value_or(divide_up(data.training_samples, batch));
  plan.total_steps = saturated_multiply(spec.train.epochs.value_or(0), plan.steps_per_epoch);
  if (spec.train.max_steps) {
    plan.total_steps =
        plan.total_steps == 0 ? *spec.train.max_steps : std::min(plan.total_steps, *spec.train.max_steps);
  }
  if (spec.train.max_time) plan.max_seconds = spec.train.max_time->value;
  plan.checkpoint_every = steps_of(spec.checkpoint.every, plan.steps_per_epoch);
  if (spec.strategy.verify_every) plan.verify_every = steps_of(*spec.strategy.verify_every, plan.steps_per_epoch);
  if (spec.log.every.unit != Duration::Unit::seconds) plan.log_every = steps_of(spec.log.every, plan.steps_per_epoch);
  plan.monitor = spec.checkpoint.monitor.or_else(data.validation_samples > 0 ? "val_loss" : "");
  plan.monitor_maximum = spec.checkpoint.mode.or_else(mode_of(plan.monitor)) == MonitorMode::maximum;
  const double base = spec.train.optimizer.as<OptimizerOptions>().learning_rate;
  plan.learning_rate = [base, schedule = spec.train.schedule, per_epoch = plan.steps_per_epoch,
                        total = plan.total_steps](std::int64_t step) {
    return schedule.as<ScheduleOptions>().learning_rate(base, {step, per_epoch, total});
  };
  return plan;
}

StartEvent start_event(const RunSpec& spec, const World& world, const Job& job, const TrainingPlan& plan,
                       const std::optional<Snapshot>& resumed, const Lead& lead) {
  StartEvent event;
  event.version = version();
  event.seed = spec.seed;
  event.ranks = world.size();
  event.mesh = {world.size(), 1, 1};
  for (const std::string& host : world.hosts()) {
    if (std::find(event.hosts.begin(), event.hosts.end(), host) == event.hosts.end()) event.hosts.push_back(host);
  }
  event.device = job.backend().fingerprint();
  for (const FlatEntry& entry : job.programs().programs().front().flat.parameters) event.parameters += entry.count;
  for (const Program::LayerLine& layer : job.programs().programs().front().layers)
    event.flops_per_sample += 3 * layer.flops;
  event.peak_flops = peak_flops(spec, job.backend(), world.size());
  event.resumed_from = lead.resumed_from;
  event.steps_per_epoch = plan.steps_per_epoch;
  event.total_steps = plan.total_steps;
  event.first_step = resumed ? resumed->step : 0;
  return event;
}

// What a checkpoint says of the run that wrote it; "" where it does not.
std::string fact(const std::optional<Snapshot>& snapshot, const std::string& name) {
  if (!snapshot) return "";
  const auto found = snapshot->facts.find(name);
  return found == snapshot->facts.end() ? "" : found->second;
}

// batch_size_per_rank becomes a batch of all ranks together when a run begins; a resume on other ranks keeps that.
RunSpec with_global_batch(RunSpec spec, int ranks, const std::optional<Snapshot>& resumed) {
  std::int64_t batch = spec.train.global_batch(ranks);
  const std::string before = fact(resumed, "batch_size");
  if (spec.train.batch_size_per_rank && !before.empty()) {
    const std::int64_t kept = std::stoll(before);
    if (kept != batch) {
      log::info(format("the batch stays {} samples, as when the run began: {} for each rank would make it {} now", kept,
                       *spec.train.batch_size_per_rank, batch));
    }
    batch = kept;
  }
  spec.train.batch_size = batch;
  spec.train.batch_size_per_rank.reset();
  return spec;
}

// The run directory's config with what was found out since.
Node with_findings(Node config, const Data& opened, int ranks, std::int64_t batch) {
  const DataInfo& data = opened.info();
  std::erase_if(config.entries, [](const Node::Entry& entry) { return entry.key == "resolved"; });
  Node found = map_node();
  append(found, "ranks", scalar_node(std::to_string(ranks)));
  append(found, "batch_size", scalar_node(std::to_string(batch)));
  append(found, "shape", Value<std::vector<std::int64_t>>::write(data.sample.sizes()));
  append(found, "classes", scalar_node(std::to_string(data.classes)));
  append(found, "training_samples", scalar_node(std::to_string(data.training_samples)));
  append(found, "validation_samples", scalar_node(std::to_string(data.validation_samples)));
  if (!opened.measured().empty()) {
    Node measured = sequence_node();
    for (const Statistics& statistics : opened.measured()) {
      Node values = map_node();
      append(values, "mean", Value<std::vector<double>>::write(statistics.mean));
      append(values, "std", Value<std::vector<double>>::write(statistics.stddev));
      measured.items.push_back(std::move(values));
    }
    append(found, "normalize", std::move(measured));
  }
  append(config, "resolved", std::move(found));
  return config;
}

// What is kept with every checkpoint, and compared on a resume.
std::map<std::string, std::string> run_facts(const Job& job, const DataInfo& data, int ranks, std::int64_t batch) {
  return {{"kernel_choices", job.choices().text()},
          {"batch_size", std::to_string(batch)},
          {"device", job.backend().fingerprint()},
          {"data", data.fingerprint},
          {"ranks", std::to_string(ranks)}};
}

void warn_of_changes(const std::optional<Snapshot>& resumed, const std::map<std::string, std::string>& facts) {
  const auto differs = [&](const std::string& name) {
    const std::string before = fact(resumed, name);
    return !before.empty() && before != facts.at(name);
  };
  if (differs("data"))
    log::warning("the data has changed since the checkpoint: samples may be seen twice or not at all");
  if (differs("device")) {
    log::warning(format("the checkpoint is from {}; this is {}: the same bits are not to be expected",
                        fact(resumed, "device"), facts.at("device")));
  }
}

// Weights on all ranks: those of the checkpoint, or initial ones, which every rank computes alike.
void fill_engine(const RunSpec& spec, Job& job, const Lead& lead, bool resumed) {
  Engine& engine = job.engine();
  engine.download();
  initialize_weights(job.program_spec(), spec.seed, engine.weights());
  if (lead.checkpoint) restore(*lead.checkpoint, engine.weights(), engine.state());
  if (resumed) broadcast_tensors(engine, job.world().communicator(), job.host_stream());
  engine.upload();
}

// What the engine has allocated, as `check` prints it.
void tell_memory(const MemoryPlan& memory) {
  for (int region = 0; region < region_count; ++region) {
    log::debug(format("memory: {} {} bytes", name_of(static_cast<Region>(region)),
                      memory.bytes[static_cast<std::size_t>(region)]));
  }
}

// Notes how a run failed, as far as that can still be written: the error itself is what the user must see.
void tell_failure(MetricsSink& sink, const Error& error, const Trainer& trainer) {
  EndEvent end;
  end.status = error.kind() == ErrorKind::diverged ? "diverged" : "failed";
  end.step = trainer.step();
  end.epoch = trainer.epoch();
  try {
    sink.end(end);
  } catch (const Error& second) {
    log::debug(second.what());
  }
}

}  // namespace

int train(const RunSpec& stated, const TrainingRequest& request, RankContext& context) {
  World& world = context.world;
  RankDevice device = open_device(stated, context);
  Lead lead = world.rank() == 0 ? take_lead(stated, request) : Lead{};
  if (any_rank(lead.directory && lead.directory->is_finished(), world.communicator(), device.host)) {
    if (lead.directory) {
      log::info(format("{} holds a finished run: nothing to do", lead.directory->path()));
      if (request.json) std::fputs(final_line(lead.directory->metrics_path()).c_str(), stdout);
    }
    return 0;
  }
  const std::optional<Snapshot> resumed = broadcast_position(
      lead.checkpoint ? std::optional(lead.checkpoint->snapshot) : std::nullopt, world.communicator(), device.host);
  const RunSpec spec = with_global_batch(stated, world.size(), resumed);
  const std::int64_t batch = *spec.train.batch_size;
  const DataPosition start = resumed ? resumed->position : DataPosition{spec.seed, 0, 0};

  const Data data(spec.data, spec.seed);
  Job job(spec, data.info(), device, world, start, fact(resumed, "kernel_choices"));
  tell_memory(job.engine().memory());
  fill_engine(spec, job, lead, resumed.has_value());
  lead.checkpoint.reset();  // its memory is no longer needed

  TrainingPlan plan = training_plan(spec, data.info(), world.size());
  plan.result_names = result_names(job.program_spec());
  plan.facts = run_facts(job, data.info(), world.size(), batch);
  warn_of_changes(resumed, plan.facts);
  const auto training = data.training(batch, job.share(), start, context.threads);
  std::unique_ptr<BatchSource> validation;
  if (data.has(PartKind::validation))
    validation = data.evaluation(PartKind::validation, batch, job.share(), context.threads);
  if (lead.directory) lead.directory->write_config(with_findings(request.config, data, world.size(), batch));
  if (lead.sink) lead.sink->start(start_event(spec, world, job, plan, resumed, lead));

  plan.scales_loss = spec.train.precision == Precision::float16;
  plan.profile_first = request.profile_first;
  plan.profile_end = request.profile_end;
  OpRecorder profiler;
  const auto gpus = watch_gpus(spec, job.backend(), world, device.host, plan.log_every);
  Trainer trainer({job.engine(), world.communicator(), device.host, job.programs(), *training, validation.get(),
                   lead.sink.get(), lead.store.get(), [&context] { return context.stop.pending(); },
                   request.profile_end > 0 ? &profiler : nullptr, gpus.get()},
                  plan);
  if (resumed) trainer.resume(*resumed);
  try {
    EndEvent end = trainer.run();
    if (gpus) end.gpus = gpus->summary();
    if (request.profile_end > 0) {
      write_timeline(profiler, lead.directory ? lead.directory->path() + "/timeline.json" : "", world.communicator(),
                     device.host);
    }
    if (lead.sink) {
      job.engine().download();
      end.weights_sha256 = weights_sha256(job.engine().weights());
      lead.sink->end(end);
      if (request.json) std::fputs(end_line(end).c_str(), stdout);
    }
    return end.status == "stopped" ? exit_code(ErrorKind::stopped) : 0;
  } catch (const Error& error) {
    if (lead.sink) tell_failure(*lead.sink, error, trainer);
    throw;
  }
}

}  // namespace trainctl
