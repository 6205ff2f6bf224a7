// Training on one rank.
#include "cmd/training.h"

#include "cmd/auto_strategy.h"
#include "cmd/job.h"
#include "cmd/run_files.h"
#include "cmd/scaling_watch.h"
#include "cmd/shares.h"
#include "core/backend/gpu_peaks.h"
#include "core/base/format.h"
#include "core/base/log.h"
#include "core/base/version.h"
#include "core/spec/units.h"
#include "io/checkpoint/atomic_file.h"
#include "io/checkpoint/writer.h"
#include "io/loader/data.h"
#include "io/metrics/metrics_jsonl.h"
#include "parallel/bench/timeline.h"
#include "parallel/comm/text.h"
#include "parallel/launch/report.h"
#include "parallel/launch/stop.h"
#include "parallel/trainer/initial_weights.h"
#include "parallel/trainer/restore.h"
#include "parallel/trainer/resume.h"
#include "parallel/trainer/snapshot_saver.h"
#include "parallel/trainer/trainer.h"
#include "parallel/trainer/training_plan.h"

namespace trainctl {
namespace {

StartEvent start_event(const RunSpec& spec, const World& world, const Job& job, const TrainingPlan& plan,
                       const std::optional<Snapshot>& resumed, const RunFiles& files) {
  StartEvent event;
  event.version = version();
  event.seed = spec.seed;
  event.ranks = world.size();
  event.mesh = plan.mesh;
  for (const std::string& host : world.hosts()) {
    if (std::find(event.hosts.begin(), event.hosts.end(), host) == event.hosts.end()) event.hosts.push_back(host);
  }
  event.device = job.backend().fingerprint();
  for (const LayerLine& layer : job.programs().programs().front().layers) {
    event.parameters += layer.parameters;
    event.flops_per_sample += 3 * layer.flops;
  }
  event.peak_flops = world.size() * datasheet_flops(job.backend().fingerprint(), spec.train.compute(), spec.train.tf32);
  event.resumed_from = files.resumed_from;
  event.steps_per_epoch = plan.steps_per_epoch;
  event.total_steps = plan.total_steps;
  event.first_step = resumed ? resumed->step : 0;
  return event;
}

// Puts the strategy that `auto` stands for into the spec and the config that is kept. Collective.
void resolve_strategy(RunSpec& spec, Node& config, const RunFiles& files, const DataInfo& data, RankDevice& device,
                      RankContext& context) {
  World& world = context.world;
  const std::string before = broadcast_text(chosen_before(files, world.size()), 0, world.communicator(), device.host);
  spec.strategy = before.empty() ? choose_strategy(spec, data, device, context) : read_strategy(before);
  for (Node::Entry& entry : config.entries) {
    if (entry.key == "strategy") entry.value = Value<StrategyOptions>::write(spec.strategy);
  }
}

// What is kept with every checkpoint, and compared on a resume.
std::map<std::string, std::string> run_facts(const Job& job, const DataInfo& data, int ranks, std::int64_t batch,
                                             std::int64_t total_steps, const std::string& shares) {
  std::map<std::string, std::string> facts{
      {"kernel_choices", job.choices().text()}, {"batch_size", std::to_string(batch)},
      {"device", job.backend().fingerprint()},  {"data", data.fingerprint},
      {"ranks", std::to_string(ranks)},         {"total_steps", std::to_string(total_steps)}};
  const std::vector<std::string>& class_names = data.targets[0].class_names;
  if (!shares.empty()) facts[share_fact] = shares;
  if (!class_names.empty()) facts[class_names_fact] = write_class_names(class_names);
  return facts;
}

// Weights on all ranks: those of the checkpoint, or initial ones, which every rank computes alike.
void fill_engine(const RunSpec& spec, Job& job, const SnapshotPlan& plan, const RunFiles& files, bool resumed,
                 const std::string& config_file) {
  Engine& engine = job.engine();
  engine.download();
  initialize_weights(job.program_spec(), spec.seed, engine.weights());
  if (resumed) {
    RestoreSource source;
    if (files.checkpoint) source = {&files.checkpoint->snapshot, files.checkpoint->path, config_file};
    restore_weights(source, plan.weights, engine.weights(), job.world().communicator(), job.host_stream());
    restore_state(source, plan.state, engine.state(), job.world().communicator(), job.host_stream());
  }
  engine.upload();
}

// The weights of the run's best checkpoint. Collective.
void restore_best(Job& job, const SnapshotPlan& plan, const RunFiles& files, const std::string& config_file) {
  std::optional<LoadedCheckpoint> best;
  if (files.directory) best = load_named_checkpoint(files.directory->path() + "/checkpoints/best");
  RestoreSource source;
  if (best) source = {&best->snapshot, best->path, config_file};
  job.engine().download();
  restore_weights(source, plan.weights, job.engine().weights(), job.world().communicator(), job.host_stream());
  job.engine().upload();
}

// What the engine of this rank and its sources of batches have allocated: `check` prints that of the rank with most.
void log_memory(MemoryPlan memory, const BatchSource& training, const BatchSource* validation) {
  memory.prefetched = training.batch_bytes() + (validation != nullptr ? validation->batch_bytes() : 0);
  for (const MemoryLine& line : memory.lines()) log::debug(format("memory: {} {} bytes", line.name, line.bytes));
}

// Notes how a run failed, as far as that can still be written: the error itself is what the user must see.
void record_failure(MetricsSink& sink, const Error& error, const Trainer& trainer) {
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
  RankDevice device = open_device(stated.cluster, stated.train, stated.strategy, context);
  RunFiles files = world.rank() == 0 ? open_run_files(stated, request) : RunFiles{};
  if (any_rank(files.directory && files.directory->is_finished(), world.communicator(), device.host)) {
    if (files.directory) {
      log::info(format("{} holds a finished run: nothing to do; more epochs or steps would go on from it",
                       files.directory->path()));
      if (request.json) answer(final_line(files.directory->metrics_path()));
    }
    return 0;
  }
  const std::optional<Snapshot> resumed = broadcast_position(
      files.checkpoint ? std::optional(files.checkpoint->snapshot) : std::nullopt, world.communicator(), device.host);
  RunSpec spec = stated;
  spec.train = with_global_batch(stated.train, world.size(), resumed);
  const std::int64_t batch = *spec.train.batch_size;
  const DataPosition start = resumed ? resumed->position : DataPosition{spec.seed, 0, 0};

  const Data data(spec.data, spec.seed, data_use(spec));
  Node config = request.config;
  if (spec.strategy.automatic) resolve_strategy(spec, config, files, data.info(), device, context);
  spec = with_shares(std::move(spec), data, device, context, resumed);
  Job job(spec, data.info(), device, world, start, fact(resumed, "kernel_choices"));
  const SnapshotPlan snapshots =
      plan_snapshot(job.engine().weights(), job.engine().state(), world.communicator(), device.host);
  fill_engine(spec, job, snapshots, files, resumed.has_value(), request.config_file);
  files.checkpoint.reset();  // its memory is no longer needed

  TrainingPlan plan = training_plan(
      spec.train, spec.strategy, {spec.checkpoint.every, spec.log.every, spec.checkpoint.monitor, spec.checkpoint.mode},
      data.info(), world.size());
  plan.facts = run_facts(job, data.info(), world.size(), batch, plan.total_steps,
                         stated.strategy.shares_by_measuring() ? text_of_shares(spec.strategy) : "");
  const StopRequest stop;  // until here there was nothing to save
  const auto stop_requested = [&stop] { return stop.pending(); };
  // A replica that takes steps alone finishes those up to the next average, where all ranks know of a stop.
  const auto waits_until = plan.sync_every == 1 ? std::function<bool()>(stop_requested) : nullptr;
  const auto training =
      data.training(batch, job.sharer(), start, context.threads, job.target_forms(), job.batch_memory(), waits_until);
  std::unique_ptr<BatchSource> validation;
  if (data.has(PartKind::validation) && request.scaling == nullptr)
    validation =
        data.evaluation(PartKind::validation, evaluation_batch(batch, job.sharer()), evaluation_sharer(job.sharer()),
                        context.threads, job.target_forms(), job.batch_memory(), stop_requested);
  if (files.directory) {
    claim_directory(files, spec, request, with_findings(config, spec, data, job, stated.strategy.automatic));
  }
  const bool shares_directory = join_log(files.directory ? files.directory->path() : "", context, device.host);
  log_memory(job.engine().memory(), *training, validation.get());
  if (world.rank() == 0) {
    for (const std::string& warning : data.info().warnings) log::warning(warning);
  }
  if (resumed && files.directory) {
    const auto rate = [&spec](const ScheduleTime& time) { return scheduled_rate(spec.train, time); };
    log_resume(plan, rate, *resumed, files.resumed_from);
  }
  if (files.sink) files.sink->start(start_event(spec, world, job, plan, resumed, files));

  plan.scales_loss = spec.train.precision == Precision::float16;
  plan.profile_first = request.profile_first;
  plan.profile_end = request.profile_end;
  OpRecorder profiler;
  std::unique_ptr<GpuWatch> gpus;
  if (spec.log.gpu && !device.gpu_uuid.empty()) {
    gpus = watch_gpu(device.gpu_uuid, world.communicator(), device.host, plan.log_every);
  }
  CheckpointWriter writer;
  SnapshotSaver saver(snapshots,
                      {shares_directory ? &writer : nullptr, files.store.get(), spec.checkpoint.weights_only},
                      world.communicator(), device.host);
  const MeshAxes axes(world.communicator(), job.rank().mesh, false);
  Communicator* const replicas = axes.communicators().find(MeshAxis::data);
  std::unique_ptr<ScalingWatch> scaling;
  if (request.scaling != nullptr) {
    scaling = std::make_unique<ScalingWatch>(*request.scaling, job, device, saver, *training);
    scaling->shorten(plan);
  }
  Trainer trainer(
      {job.engine(), world.communicator(), replicas, device.host, job.programs(), saver, scaling ? *scaling : *training,
       validation.get(), files.sink.get(), stop_requested, request.profile_end > 0 ? &profiler : nullptr, gpus.get(),
       scaling ? scaling->after_step() : nullptr, [&] { restore_best(job, snapshots, files, request.config_file); }},
      plan);
  if (resumed) trainer.resume(*resumed, !names_a_checkpoint(request.resume));
  try {
    EndEvent end = trainer.run();
    if (gpus) end.gpus = gpus->summary();
    if (scaling)
      scaling->save_trace(files.directory ? files.directory->path() : "", shares_directory ? &writer : nullptr);
    if (request.profile_end > 0) {
      const std::string timeline = gather_timeline(profiler, world.communicator(), device.host);
      if (files.directory) write_file(files.directory->path() + "/timeline.json", timeline);
    }
    if (files.sink) {
      files.sink->end(end);
      if (request.json) answer(end_line(end));
    }
    return end.status == "stopped" ? exit_code(ErrorKind::stopped) : 0;
  } catch (const Error& error) {
    if (files.sink) record_failure(*files.sink, error, trainer);
    throw;
  }
}

}  // namespace trainctl
