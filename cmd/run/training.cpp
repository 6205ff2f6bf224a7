// Training on one rank.
#include "cmd/run/training.h"

#include "cmd/plan/auto_strategy.h"
#include "cmd/plan/shares.h"
#include "cmd/run/job.h"
#include "cmd/run/phases.h"
#include "cmd/run/pretrained.h"
#include "cmd/run/run_facts.h"
#include "cmd/run/run_files.h"
#include "cmd/scaling/scaling_watch.h"
#include "core/base/clock.h"
#include "core/base/error.h"
#include "core/base/format.h"
#include "core/base/log.h"
#include "core/spec/units.h"
#include "io/checkpoint/atomic_file.h"
#include "io/checkpoint/writer.h"
#include "io/loader/data.h"
#include "io/metrics/metrics_jsonl.h"
#include "parallel/bench/timeline.h"
#include "parallel/comm/joint_attempt.h"
#include "parallel/comm/text.h"
#include "parallel/launch/report.h"
#include "parallel/launch/room.h"
#include "parallel/launch/status.h"
#include "parallel/launch/stop.h"
#include "parallel/plan/prediction.h"
#include "parallel/trainer/initial_weights.h"
#include "parallel/trainer/restore.h"
#include "parallel/trainer/resume.h"
#include "parallel/trainer/snapshot_saver.h"
#include "parallel/trainer/trainer.h"
#include "parallel/trainer/training_plan.h"

namespace trainctl {
namespace {

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

// Weights on all ranks: those of the checkpoint or of `model.weights`, which rank 0 has, or initial ones, which every
// rank computes alike. The optimizer's state is the checkpoint's where the run goes on with that, else it begins anew.
void fill_engine(const RunSpec& spec, Job& job, const SnapshotPlan& plan, const RunFiles& files, bool resumed,
                 bool keeps_state, const std::string& config_file) {
  Engine& engine = job.engine();
  engine.download();
  initialize_weights(job.program_spec(), spec.seed, engine.weights());
  RestoreSource source;
  if (files.checkpoint) source = {&files.checkpoint->snapshot, files.checkpoint->path, config_file};
  if (files.pretrained) source = {&files.pretrained->snapshot, files.pretrained->path, config_file};
  Communicator& world = job.world().communicator();
  if (resumed || spec.model.weights) restore_weights(source, plan.weights, engine.weights(), world, job.host_stream());
  engine.begin_at_weights();
  if (keeps_state) restore_state(source, plan.state, engine.state(), world, job.host_stream());
  engine.upload();
}

// The weights of the run's best checkpoint. Collective.
void restore_best(Job& job, const RunFiles& files, const std::string& config_file) {
  std::optional<LoadedCheckpoint> best;
  if (files.directory) best = load_named_checkpoint(files.directory->path() + "/checkpoints/best");
  RestoreSource source;
  if (best) source = {&best->snapshot, best->path, config_file};
  restore_weights(source, job.engine(), job.world().communicator(), job.host_stream());
}

// What the engine of this rank and its sources of batches have allocated: `check` prints that of the rank with most.
MemoryPlan allocated(MemoryPlan memory, const BatchSource& training, const BatchSource* validation) {
  memory.prefetched = training.batch_bytes() + (validation != nullptr ? validation->batch_bytes() : 0);
  return memory;
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

// What the phases of a run share on one rank.
struct Run {
  RunSpec spec;  // of all phases, with the batch of all ranks together, and the strategy that `auto` stood for
  const RunSpec& stated;
  const TrainingRequest& request;
  RankContext& context;
  RankDevice& device;
  RunFiles& files;
  const Data& data;
  Node config;                           // what the run directory keeps
  double begin = 0;                      // when the first of these phases began
  std::optional<StopRequest> stop = {};  // from when on there is something to save
  bool shares_directory = false;
  std::unique_ptr<GpuWatch> gpus = {};
};

// Everything that can be wrong with later phases comes to light before the first step.
void check_later_phases(const Run& run, std::size_t number, const DataPosition& start) {
  for (std::size_t later = number + 1; later < phase_count(run.spec); ++later) {
    check_job(in_phase(run.spec, later), run.data.info(), run.device, run.context.world, start);
  }
}

// A run whose directory has no room for a checkpoint does not begin. Collective.
void require_room(Run& run, const Job& job) {
  JointAttempt attempt(run.context.world.communicator(), run.device.host);
  attempt.run([&] {
    if (!run.files.directory) return;
    const std::int64_t bytes =
        checkpoint_bytes({&job.programs().programs().front()}, run.spec.checkpoint.weights_only) + records_of_run;
    const std::string why = why_no_room(nearest_folder(run.files.directory->path()), bytes);
    if (why.empty()) return;
    throw Error(ErrorKind::resource, "there is no room for a checkpoint: " + why,
                "make room, or choose another run directory (--run-dir)");
  });
  attempt.throw_if_any_failed();
}

// Makes the run directory this run's, and begins to tell of it.
void begin_run(Run& run, Job& job, const TrainOptions& train, const TrainingPlan& plan, const MemoryPlan& memory,
               const std::optional<Snapshot>& resumed) {
  RunFiles& files = run.files;
  require_room(run, job);
  if (files.directory) {
    claim_directory(files, run.spec, run.request,
                    with_findings(run.config, run.spec, run.data, job, run.stated.strategy.automatic), run.data.info());
  }
  run.shares_directory = join_log(files.directory ? files.directory->path() : "", run.context, run.device.host);
  if (run.context.world.rank() == 0) {
    for (const std::string& warning : run.data.info().warnings) log::warning(warning);
    for (const std::string& warning : job.engine().program(0).program.warnings) log::warning(warning);
    const std::string short_run = warmup_warning(train, run.data.info(), run.context.world.size());
    if (!short_run.empty()) log::warning(short_run);
    if (train.rate_factor() != 1) {
      log::info(format("the learning rate is {:.4g} times that of the config, for batches of {}", train.rate_factor(),
                       *train.batch_size));
    }
  }
  if (resumed && files.directory) {
    const auto rate = [&train](const ScheduleTime& time) { return scheduled_rate(train, time); };
    log_resume(plan, rate, *resumed, files.resumed_from);
  }
  if (files.sink) {
    files.sink->start(start_event(run.spec, run.context.world, job, plan, memory, resumed, files.resumed_from));
  }
  if (run.spec.log.gpu && !run.device.gpu_uuid.empty()) {
    run.gpus = watch_gpu(run.device.gpu_uuid, run.context.world.communicator(), run.device.host, plan.log_every);
  }
  run.begin = seconds_now();
}

// Tells this run's supervisor, where there is one, how long a stop may take.
std::function<void(double longest, bool saves)> teller_of_stop_time(const Situation& situation) {
  if (!situation.supervised) return nullptr;
  return [&situation](double longest, bool saves) { write_stop_time(situation.status_file, {longest, saves}); };
}

// How a phase ended, and whether the next one follows.
struct PhaseEnd {
  EndEvent event;
  bool next_follows = false;
};

// Trains a phase, from its beginning or from the checkpoint in run.files, whose position is `resumed`. Collective.
PhaseEnd train_phase(Run& run, const PhaseStart& phase, const std::optional<Snapshot>& resumed, bool begins) {
  World& world = run.context.world;
  RankDevice& device = run.device;
  RunFiles& files = run.files;
  const TrainingRequest& request = run.request;
  const RunSpec spec = in_phase(run.spec, phase.number);
  const std::int64_t batch = *spec.train.batch_size;
  const DataPosition start = resumed ? resumed->position : DataPosition{run.spec.seed, 0, 0};
  if (begins) check_later_phases(run, phase.number, start);
  Job job(spec, run.data.info(), device, world, start, fact(resumed, "kernel_choices"));
  const SnapshotPlan snapshots =
      plan_snapshot(job.engine().weights(), job.engine().state(), world.communicator(), device.host);
  const bool keeps_state = resumed.has_value() && (phase.number == 0 || resumed->step > phase.step);
  fill_engine(run.spec, job, snapshots, files, resumed.has_value(), keeps_state, request.config_file);
  files.checkpoint.reset();  // their memory is no longer needed
  files.pretrained.reset();

  TrainingPlan plan = training_plan(
      spec.train, spec.strategy,
      {spec.checkpoint.every, spec.log.every, spec.checkpoint.monitor, spec.checkpoint.mode, spec.log.histograms},
      run.data.info(), world.size(), phase);
  if (request.scaling != nullptr) plan.histograms_every = 0;
  plan.phases = phase_count(run.spec);
  plan.facts = run_facts(job, run.data.info(), world.size(), batch, plan.total_steps - phase.step,
                         run.stated.strategy.shares_by_measuring() ? text_of_shares(spec.strategy) : "");
  plan.facts[kept_input_fact] = write_kept_inputs(run.data.kept_inputs());
  if (!run.stop) run.stop.emplace();
  const auto stop_requested = [&run] { return run.stop->pending(); };
  // A replica that takes steps alone finishes those up to the next average, where all ranks know of a stop.
  const auto waits_until = plan.sync_every == 1 ? std::function<bool()>(stop_requested) : nullptr;
  const auto training = run.data.training(batch, job.sharer(), start, run.context.threads, job.target_forms(),
                                          job.batch_memory(), waits_until);
  std::unique_ptr<BatchSource> validation;
  if (run.data.has(PartKind::validation) && request.scaling == nullptr)
    validation = run.data.evaluation(PartKind::validation, evaluation_batch(batch, job.sharer()),
                                     evaluation_sharer(job.sharer()), run.context.threads, job.target_forms(),
                                     job.batch_memory(), stop_requested);
  const MemoryPlan memory = allocated(job.engine().memory(), *training, validation.get());
  if (begins) begin_run(run, job, spec.train, plan, memory, resumed);
  if (plan.max_seconds > 0) plan.max_seconds = std::max(plan.max_seconds - (seconds_now() - run.begin), 1e-3);
  for (const MemoryLine& line : memory.lines()) log::debug(format("memory: {} {} bytes", line.name, line.bytes));
  if (const std::string text = phase_text(run.spec, phase.number); world.rank() == 0 && !text.empty()) log::info(text);

  plan.scales_loss = spec.train.precision == Precision::float16;
  plan.profile_first = request.profile_first;
  plan.profile_end = request.profile_end;
  OpRecorder profiler;
  CheckpointWriter writer;
  SnapshotSaver saver(snapshots,
                      {run.shares_directory ? &writer : nullptr, files.store.get(), spec.checkpoint.weights_only},
                      world.communicator(), device.host);
  const MeshAxes axes(world.communicator(), job.rank().mesh, false);
  Communicator* const replicas = axes.communicators().find(MeshAxis::data);
  HistogramPass histograms(job.engine(), snapshots.weights, world.communicator(), device.host, files.details);
  std::unique_ptr<SampleWatch> samples;
  if (validation && shows_samples(spec, run.data.info())) {
    samples = std::make_unique<SampleWatch>(*validation, evaluation_sharer(job.sharer()), run.data.info().inputs[0],
                                            *spec.log.samples, files.details);
  }
  std::unique_ptr<ScalingWatch> scaling;
  if (request.scaling != nullptr) {
    scaling = std::make_unique<ScalingWatch>(*request.scaling, job, device, saver, *training);
    scaling->shorten(plan);
  }
  Trainer trainer(
      {job.engine(), world.communicator(), replicas, device.host, job.programs(), saver, scaling ? *scaling : *training,
       validation.get(), files.sink.get(), stop_requested, request.profile_end > 0 ? &profiler : nullptr,
       run.gpus.get(), &histograms, samples.get(), scaling ? scaling->after_step() : nullptr,
       [&] { restore_best(job, files, request.config_file); }, teller_of_stop_time(run.context.situation)},
      plan);
  if (resumed) trainer.resume(*resumed, !begins || !names_a_checkpoint(request.resume));
  try {
    PhaseEnd end{trainer.run()};
    if (scaling) {
      scaling->save_trace(files.directory ? files.directory->path() : "", run.shares_directory ? &writer : nullptr);
    }
    if (request.profile_end > 0 && request.profile_first >= phase.step) {
      const std::string timeline = gather_timeline(profiler, world.communicator(), device.host);
      if (files.directory) write_file(files.directory->path() + "/timeline.json", timeline);
    }
    const bool is_cut = (spec.train.max_steps && trainer.step() >= *spec.train.max_steps) ||
                        (scaling && trainer.step() >= request.scaling->steps);
    end.next_follows = trainer.ended_phase() && phase.number + 1 < plan.phases && !is_cut;
    return end;
  } catch (const Error& error) {
    if (files.sink) record_failure(*files.sink, error, trainer);
    throw;
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
  std::optional<Snapshot> resumed = broadcast_position(
      files.checkpoint ? std::optional(files.checkpoint->snapshot) : std::nullopt, world.communicator(), device.host);
  RunSpec spec = stated;
  spec.train = with_global_batch(stated.train, world.size(), resumed);

  const Data data(spec.data, spec.seed, data_use(spec));
  if (world.rank() == 0 && !resumed) files.pretrained = load_pretrained(spec, data.info());
  Node config = request.config;
  if (spec.strategy.automatic) resolve_strategy(spec, config, files, data.info(), device, context);
  spec = with_shares(std::move(spec), data, device, context, resumed);

  Run run{std::move(spec), stated, request, context, device, files, data, std::move(config)};
  const auto next_phase = [&] {
    return find_phase(run.spec.train.phases, steps_per_epoch(run.spec.train, data.info(), world.size()), resumed);
  };
  PhaseEnd end = train_phase(run, next_phase(), resumed, true);
  while (end.next_follows) {  // from the checkpoint of the one before, as a resumed run would
    if (files.directory) files.checkpoint = load_newest_checkpoint(files.directory->path());
    resumed = broadcast_position(files.checkpoint ? std::optional(files.checkpoint->snapshot) : std::nullopt,
                                 world.communicator(), device.host);
    end = train_phase(run, next_phase(), resumed, false);
  }
  end.event.seconds = seconds_now() - run.begin;
  if (run.gpus) end.event.gpus = run.gpus->summary();
  if (files.sink) {
    files.sink->end(end.event);
    if (request.json) answer(end_line(end.event));
  }
  return end.event.status == "stopped" ? exit_code(ErrorKind::stopped) : 0;
}

}  // namespace trainctl
