// Training on one rank.
#include "cmd/training.h"

#include <filesystem>

#include "cmd/gpus.h"
#include "cmd/job.h"
#include "cmd/restore.h"
#include "cmd/timeline.h"
#include "cmd/training_plan.h"
#include "cmd/version.h"
#include "core/base/format.h"
#include "core/base/log.h"
#include "core/spec/units.h"
#include "io/checkpoint/atomic_file.h"
#include "io/checkpoint/store.h"
#include "io/loader/data.h"
#include "io/metrics/fan_out.h"
#include "io/metrics/metrics_jsonl.h"
#include "io/metrics/run_directory.h"
#include "parallel/comm/text.h"
#include "parallel/launch/report.h"
#include "parallel/launch/status.h"
#include "parallel/launch/stop.h"
#include "parallel/trainer/trainer.h"

namespace trainctl {
namespace {

// What rank 0 alone has: the run directory, what it tells, and the checkpoint to go on from.
struct RunFiles {
  std::unique_ptr<RunDirectory> directory;
  std::optional<LoadedCheckpoint> checkpoint;
  std::string resumed_from;  // its path
  std::unique_ptr<CheckpointStore> store;
  std::unique_ptr<MetricsFanOut> sink;
};

bool names_a_checkpoint(const std::string& resume) { return resume != "auto" && resume != "never"; }

// Finds the run directory and loads the checkpoint to go on from; nothing is written yet.
RunFiles open_run_files(const RunSpec& spec, const TrainingRequest& request) {
  RunFiles files;
  files.directory = std::make_unique<RunDirectory>(
      RunRequest{spec.name, request.run_directory, request.resume != "never", request.config});
  if (files.directory->is_finished()) return files;
  if (names_a_checkpoint(request.resume)) {
    files.checkpoint = load_named_checkpoint(request.resume);
  } else if (files.directory->resumes()) {
    files.checkpoint = load_newest_checkpoint(files.directory->path());
  }
  if (files.checkpoint) files.resumed_from = files.checkpoint->path;
  return files;
}

// Makes the run directory this run's, when everything else is accepted.
void claim_directory(RunFiles& files, const RunSpec& spec, const TrainingRequest& request, const Node& config) {
  files.directory->claim(config);
  if (!files.directory->remark().empty()) log::info(files.directory->remark());
  files.store = std::make_unique<CheckpointStore>(files.directory->path(),
                                                  StorePolicy{spec.checkpoint.keep, spec.checkpoint.weights_only});
  files.sink = std::make_unique<MetricsFanOut>();
  files.sink->add(std::make_unique<MetricsJsonl>(files.directory->metrics_path(), spec.log.every));
  const ProgressStyle style = request.quiet ? ProgressStyle::none : request.progress;
  files.sink->add(std::make_unique<Progress>(style, spec.log.every, request.terminal));
}

// Where a rank that shares the run directory with rank 0 logs: all its lines go to logs/rank-N.log, what matters of
// them to log.txt. The supervisor learns where that is. `path` is rank 0's run directory, "" on the others.
void join_log(const std::string& path, RankContext& context, Stream& stream) {
  namespace fs = std::filesystem;
  World& world = context.world;
  const std::string absolute = path.empty() ? "" : fs::absolute(path).string();
  const std::string own = path.empty() ? "" : lock_holder(absolute);
  const std::string directory = broadcast_text(absolute, 0, world.communicator(), stream);
  const std::string holder = broadcast_text(own, 0, world.communicator(), stream);
  if (world.rank() == 0) {
    if (context.situation.supervised) say_log(context.situation.status_file, directory + "/log.txt");
    return;
  }
  if (holder.empty() || lock_holder(directory) != holder) return;  // another host, with folders of its own
  create_folders(directory + "/logs");
  log::add_file(directory + format("/logs/rank-{}.log", world.rank()), log::Level::debug);
  log::add_file(directory + "/log.txt", log::Level::warning);
}

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
  for (const FlatEntry& entry : job.programs().programs().front().flat.parameters) event.parameters += entry.count;
  for (const LayerLine& layer : job.programs().programs().front().layers) event.flops_per_sample += 3 * layer.flops;
  event.peak_flops = peak_flops(spec, job.backend(), world.size());
  event.resumed_from = files.resumed_from;
  event.steps_per_epoch = plan.steps_per_epoch;
  event.total_steps = plan.total_steps;
  event.first_step = resumed ? resumed->step : 0;
  return event;
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
  if (!data.class_names.empty()) append(found, "class_names", Value<std::vector<std::string>>::write(data.class_names));
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
std::map<std::string, std::string> run_facts(const Job& job, const DataInfo& data, int ranks, std::int64_t batch,
                                             std::int64_t total_steps) {
  std::map<std::string, std::string> facts{
      {"kernel_choices", job.choices().text()}, {"batch_size", std::to_string(batch)},
      {"device", job.backend().fingerprint()},  {"data", data.fingerprint},
      {"ranks", std::to_string(ranks)},         {"total_steps", std::to_string(total_steps)}};
  if (!data.class_names.empty()) facts[class_names_fact] = write_class_names(data.class_names);
  return facts;
}

// Weights on all ranks: those of the checkpoint, or initial ones, which every rank computes alike.
void fill_engine(const RunSpec& spec, Job& job, const RunFiles& files, bool resumed, const std::string& config_file) {
  Engine& engine = job.engine();
  engine.download();
  initialize_weights(job.program_spec(), spec.seed, engine.weights());
  if (files.checkpoint) restore(*files.checkpoint, engine.weights(), engine.state(), config_file);
  if (resumed) broadcast_tensors(engine, job.world().communicator(), job.host_stream());
  engine.upload();
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
  RankDevice device = open_device(stated, context);
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
  const RunSpec spec = with_global_batch(stated, world.size(), resumed);
  const std::int64_t batch = *spec.train.batch_size;
  const DataPosition start = resumed ? resumed->position : DataPosition{spec.seed, 0, 0};

  const Data data(spec.data, spec.seed, data_use(spec));
  Job job(spec, data.info(), device, world, start, fact(resumed, "kernel_choices"));
  fill_engine(spec, job, files, resumed.has_value(), request.config_file);
  files.checkpoint.reset();  // its memory is no longer needed

  TrainingPlan plan = training_plan(spec, data.info(), world.size());
  plan.facts = run_facts(job, data.info(), world.size(), batch, plan.total_steps);
  const StopRequest stop;  // until here there was nothing to save
  const auto stop_requested = [&stop] { return stop.pending(); };
  const auto training =
      data.training(batch, job.rank(), start, context.threads, job.target_form(), job.batch_memory(), stop_requested);
  std::unique_ptr<BatchSource> validation;
  if (data.has(PartKind::validation))
    validation = data.evaluation(PartKind::validation, batch, job.rank(), context.threads, job.target_form(),
                                 job.batch_memory(), stop_requested);
  if (files.directory) claim_directory(files, spec, request, with_findings(request.config, data, world.size(), batch));
  join_log(files.directory ? files.directory->path() : "", context, device.host);
  log_memory(job.engine().memory(), *training, validation.get());
  if (world.rank() == 0) {
    for (const std::string& warning : data.info().warnings) log::warning(warning);
  }
  if (resumed && files.directory) log_resume(spec, plan, *resumed, files.resumed_from);
  if (files.sink) files.sink->start(start_event(spec, world, job, plan, resumed, files));

  plan.scales_loss = spec.train.precision == Precision::float16;
  plan.profile_first = request.profile_first;
  plan.profile_end = request.profile_end;
  OpRecorder profiler;
  const auto gpus = watch_gpus(spec, job.backend(), world, device.host, plan.log_every);
  Trainer trainer(
      {job.engine(), world.communicator(), device.host, job.programs(), *training, validation.get(), files.sink.get(),
       files.store.get(), stop_requested, request.profile_end > 0 ? &profiler : nullptr, gpus.get()},
      plan);
  if (resumed) trainer.resume(*resumed, !names_a_checkpoint(request.resume));
  try {
    EndEvent end = trainer.run();
    if (gpus) end.gpus = gpus->summary();
    if (request.profile_end > 0) {
      write_timeline(profiler, files.directory ? files.directory->path() + "/timeline.json" : "", world.communicator(),
                     device.host);
    }
    if (files.sink) {
      job.engine().download();
      end.weights_sha256 = weights_sha256(job.engine().weights());
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
