// Opens and claims the files of a run.
#include "run/training/run_files.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <limits>
#include <thread>
#include <utility>

#include "core/base/clock.h"
#include "core/base/format.h"
#include "core/base/log.h"
#include "io/checkpoint/atomic_file.h"
#include "io/loader/data.h"
#include "io/metrics/absent_supervisor.h"
#include "io/metrics/callbacks/callbacks.h"
#include "io/metrics/find_run.h"
#include "io/metrics/metrics_jsonl.h"
#include "io/metrics/tensorboard/layer_graph.h"
#include "io/metrics/tensorboard/tensorboard.h"
#include "io/report/run_report.h"
#include "parallel/comm/text.h"
#include "parallel/launch/ranks/run_rank.h"
#include "parallel/launch/ranks/status.h"
#include "parallel/launch/slurm/batch_script.h"
#include "run/job/job.h"
#include "run/run_spec.h"
#include "run/training/training.h"

namespace trainctl {
namespace {

// Writes report.html of a run directory after epochs, in at most a hundredth of the time, and at the end. It reads the
// run directory, so this sink must come after the one that writes metrics.jsonl. If a page cannot be written, it warns
// once, and the run continues.
class ReportWriter final : public MetricsSink {
 public:
  explicit ReportWriter(std::string directory) : directory_(std::move(directory)) {}

  void start(const StartEvent&) override {}
  void step(const StepEvent&) override {}
  void epoch(const EpochEvent&) override {
    if (seconds_now() >= next_) write();
  }
  void checkpoint(const CheckpointEvent&) override {}
  void end(const EndEvent&) override { write(); }

 private:
  void write() {
    constexpr double shortest_wait = 10;  // seconds between pages
    const double begin = seconds_now();
    try {
      write_file(directory_ + "/report.html", run_page(load_run_report(directory_)));
    } catch (const Error& error) {
      if (!warned_) log::warning(format("the report of the run cannot be written: {}", error.what()));
      warned_ = true;
    }
    const double end = seconds_now();
    next_ = end + std::max(shortest_wait, 100 * (end - begin));
  }

  std::string directory_;
  double next_ = 0;  // the first time at which an epoch writes the page, by seconds_now()
  bool warned_ = false;
};

// Loads the newest whole copy in shared memory of a run that starts again, if the supervisor with the name `launch` has
// started the ranks that wrote it; no value if none is of a step after `after`.
std::optional<LoadedCheckpoint> load_copy(const std::string& run_directory, const std::string& launch,
                                          std::int64_t after) {
  const std::string folder = memory_folder_of(run_directory);
  if (!are_copies_of(folder, launch)) return std::nullopt;
  try {
    return load_newest_checkpoint(folder, after);
  } catch (const Error& error) {
    log::warning(format("the copies in memory cannot be used: {}", error.what()));
    return std::nullopt;
  }
}

// Loads the newest whole checkpoint of the directory into `files`. If `stored`, the newest one by its manifest, is
// damaged, returns a newer copy in memory, if there is one.
std::optional<LoadedCheckpoint> load_checkpoint_or_copy(RunFiles& files, const std::string& continued,
                                                        const std::string& launch,
                                                        const std::optional<CheckpointFolder>& stored) {
  try {
    files.checkpoint = load_newest_checkpoint(files.directory->path());
  } catch (const Error& error) {
    std::optional<LoadedCheckpoint> copy;
    if (error.kind() == ErrorKind::data && stored) copy = load_copy(continued, launch, -1);
    if (!copy) throw;
    log::warning(error.what());
    return copy;
  }
  const bool was_damaged = stored && files.checkpoint && files.checkpoint->snapshot.step < stored->step;
  return was_damaged ? load_copy(continued, launch, files.checkpoint->snapshot.step) : std::nullopt;
}

// Opens the store of copies in shared memory.
void open_memory(RunFiles& files, const CheckpointOptions& options, const TrainingRequest& request,
                 std::int64_t bytes) {
  const std::string folder = memory_folder_of(files.directory->path());
  if (!request.restart || !are_copies_of(folder, request.generation.launch)) remove_memory_folder(folder);
  if (!options.memory_every) return;
  create_memory_folder(folder, copies_in_memory * bytes);
  files.memory = std::make_unique<MemoryStore>(folder, request.generation, files.resumed_from);
}

// Finds and opens the files at once. `yields`: see RunLock.
RunFiles open_files_now(const RunSpec& spec, const TrainingRequest& request, bool yields) {
  RunFiles files;
  // After a failure the run goes on in its directory, whatever --resume demanded at its beginning.
  const std::string continued = request.restart ? request.restart->run_directory : "";
  const bool has_copies = !continued.empty() && spec.checkpoint.memory_every;
  std::optional<CheckpointFolder> stored;  // its tensors are read only if no copy is newer
  if (has_copies) stored = newest_checkpoint_by_manifest(continued);
  std::optional<LoadedCheckpoint> copy;
  if (has_copies) copy = load_copy(continued, request.generation.launch, stored ? stored->step : -1);
  files.directory =
      std::make_unique<RunDirectory>(RunRequest{.name = name_in_array(spec.name, Variables::of_process()),
                                                .explicit_path = continued.empty() ? request.run_directory : continued,
                                                .may_resume = !continued.empty() || request.resume != "never",
                                                .config = request.config,
                                                .generation = request.generation,
                                                .has_copy = copy.has_value(),
                                                .yields = yields});
  if (files.directory->is_finished()) {
    if (names_a_checkpoint(request.resume)) load_named_checkpoint(request.resume);  // throws if there is none
    return files;
  }
  if (spec.log.prometheus && request.scaling == nullptr) {
    files.prometheus = std::make_unique<Prometheus>(*spec.log.prometheus, spec.name, files.directory->metrics_path());
  }
  const bool continues = !continued.empty() && files.directory->resumes();
  if (!copy && names_a_checkpoint(request.resume) && !continues) {
    files.checkpoint = load_named_checkpoint(request.resume);
    files.foreign_keys = changed_keys_warning(request.resume, request.config);
  } else if (!copy && files.directory->resumes()) {
    copy = load_checkpoint_or_copy(files, continued, request.generation.launch, stored);
  }
  if (files.checkpoint) files.read_stored = files.newest_stored = files.checkpoint->path;
  if (copy) {
    if (stored && files.newest_stored.empty()) files.newest_stored = stored->path;
    files.checkpoint = std::move(copy);
    files.resumes_from_memory = true;
  }
  if (files.checkpoint) files.resumed_from = files.checkpoint->path;
  return files;
}

}  // namespace

bool names_a_checkpoint(const std::string& resume) { return resume != "auto" && resume != "never"; }

std::string changed_keys_warning(const std::string& path, const Node& config) {
  std::optional<std::vector<std::string>> changed;
  try {
    changed = key_differences(path, config);
  } catch (const Error& error) {
    return format("the keys of the run of {} cannot be compared with those of this run: {}", path, error.what());
  }
  if (!changed || changed->empty()) return "";
  std::string lines;
  for (const std::string& line : *changed) lines += "\n  " + line;
  return format(
      "{} is a checkpoint of a run of another config:{}\nThis run takes its weights, its step, its position in the "
      "data "
      "and the states of callbacks, and the optimizer's state only if its own optimizer has the same tensors. To begin "
      "a new run with the weights alone, set model.weights to the checkpoint instead of --resume",
      path, lines);
}

// All ranks wait together, since the wait may be longer than cluster.timeout.
RunFiles open_run_files(const RunSpec& spec, const TrainingRequest& request, World& world, Stream& stream) {
  const auto longest = time_to_start_again(spec.cluster.deadline(), spec.cluster.start_deadline());
  const double seconds = longest ? std::chrono::duration<double>(*longest).count() : 0;
  const double end = longest ? seconds_now() + seconds : std::numeric_limits<double>::infinity();
  for (bool told = false;;) {
    RunFiles files;
    bool waits = false;
    try {
      if (world.rank() == 0) files = open_files_now(spec, request, seconds_now() < end);
    } catch (const MayStartAgain& left) {
      waits = true;
      if (!std::exchange(told, true)) {
        log::warning(longest
                         ? format("{}; this run waits for up to {:g} s", left.text(), seconds)
                         : format("{}; this run waits until nothing was written there for ten minutes", left.text()));
      }
    }
    if (!any_rank(waits, world.communicator(), stream)) return files;
    std::this_thread::sleep_for(std::chrono::seconds(1));
  }
}

void claim_directory(RunFiles& files, const RunSpec& spec, const TrainingRequest& request, const Node& config,
                     const DataInfo& data, std::int64_t bytes) {
  files.directory->claim(config);
  if (const std::string& notice = files.directory->notice(); !notice.empty()) {
    if (files.directory->is_elsewhere()) {
      log::warning(notice);  // a warning, so that the location of the run is shown with --quiet, too
    } else {
      log::info(notice);
    }
  }
  const auto require_current = [directory = files.directory.get()] { directory->require_current(); };
  files.store = std::make_unique<CheckpointStore>(
      files.directory->path(), StorePolicy{.keep = spec.checkpoint.keep, .require_current = require_current},
      files.read_stored);
  if (request.scaling == nullptr) open_memory(files, spec.checkpoint, request, bytes);
  files.sink = std::make_unique<MetricsFanOut>();
  files.sink->add(std::make_unique<MetricsJsonl>(files.directory->metrics_path(), spec.log.every, require_current));
  if (spec.log.tensorboard) {
    auto board = std::make_unique<TensorBoard>(files.directory->path() + "/tensorboard", to_yaml(config),
                                               layer_graph(spec.model, data.inputs), spec.log.every,
                                               data.targets[0].class_names);
    files.details = board.get();
    files.sink->add(std::move(board));
  }
  if (request.scaling == nullptr) files.sink->add(std::make_unique<ReportWriter>(files.directory->path()));
  if (!spec.log.callbacks.empty() && request.scaling == nullptr) {
    files.sink->add(std::make_unique<Callbacks>(spec.log.callbacks, spec.name, files.directory->path()));
  }
  if (files.prometheus) {
    log::info(format("metrics for Prometheus: http://{}/metrics", to_string(spec.log.prometheus->value)));
    files.sink->add(std::move(files.prometheus));
  }
  const ProgressStyle style = request.quiet ? ProgressStyle::none : request.progress;
  files.sink->add(std::make_unique<Progress>(style, spec.log.every, request.terminal));
}

bool join_log(const std::string& path, RankContext& context, Stream& stream) {
  namespace fs = std::filesystem;
  World& world = context.world;
  const std::string absolute = path.empty() ? "" : fs::absolute(path).string();
  const std::string own = path.empty() ? "" : lock_holder(absolute);
  const std::string directory = broadcast_text(absolute, 0, world.communicator(), stream);
  const std::string holder = broadcast_text(own, 0, world.communicator(), stream);
  if (world.rank() == 0) {
    if (context.situation.supervised) write_log_path(context.situation.status_file, directory + "/log.txt");
    return true;
  }
  if (holder.empty() || lock_holder(directory) != holder) return false;  // another host with its own folders
  create_folders(directory + "/logs");
  log::add_file(directory + format("/logs/rank-{}.log", world.rank()), log::Level::debug);
  log::add_file(directory + "/log.txt", log::Level::warning);
  return true;
}

Node with_findings(Node config, const RunSpec& spec, const Data& opened, Job& job, bool chose_strategy) {
  const DataInfo& data = opened.info();
  std::erase_if(config.entries, [](const Node::Entry& entry) { return entry.key == "resolved"; });
  Node found = map_node();
  append(found, "ranks", scalar_node(std::to_string(job.world().size())));
  append(found, "batch_size", scalar_node(std::to_string(*spec.train.batch_size)));
  if (chose_strategy) append(found, "strategy", scalar_node("auto"));  // the config has the chosen strategy instead
  if (const std::vector<double> speeds = job.division().speeds; !speeds.empty()) {
    append(found, "share", Value<std::vector<double>>::write(speeds));
  }
  ByName<std::vector<std::int64_t>> shapes;
  for (const ModelInput& input : data.inputs) shapes.add(input.name, input.sample.sizes());
  ByName<std::int64_t> classes;
  const std::vector<std::string> outputs = output_names(spec.model);
  for (std::size_t i = 0; i < outputs.size(); ++i) classes.add(outputs[i], data.targets[i].classes);
  append(found, "shape", Value<ByName<std::vector<std::int64_t>>>::write(shapes));
  append(found, "classes", Value<ByName<std::int64_t>>::write(classes));
  const std::vector<std::string>& class_names = data.targets[0].class_names;
  if (!class_names.empty()) append(found, "class_names", Value<std::vector<std::string>>::write(class_names));
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
  if (const std::set<std::string>& recomputed = job.strategy().recomputed; !recomputed.empty()) {
    append(found, "recompute", Value<std::vector<std::string>>::write({recomputed.begin(), recomputed.end()}));
  }
  append(config, "resolved", std::move(found));
  return config;
}

std::string chosen_before(const RunFiles& files, int ranks) {
  if (!files.directory || !files.directory->resumes()) return "";
  const Node before = load_run_config(files.directory->path());
  const Node *strategy = before.find("strategy"), *resolved = before.find("resolved");
  const Node* then = resolved == nullptr ? nullptr : resolved->find("ranks");
  const bool same = then != nullptr && then->is_scalar() && then->text == std::to_string(ranks);
  return same && strategy != nullptr && !strategy->is_scalar() ? to_yaml(*strategy) : "";
}

}  // namespace trainctl
