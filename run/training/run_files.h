// The files of a run, which rank 0 keeps: its directory, the checkpoint that it continues, its metrics and logs.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/document.h"
#include "core/exec/interfaces/detail_sink.h"
#include "core/exec/interfaces/metrics_sink.h"
#include "io/checkpoint/load.h"
#include "io/checkpoint/store.h"
#include "io/metrics/prometheus/prometheus.h"
#include "io/metrics/run_directory.h"
#include "io/weights/load.h"
#include "run/training/memory_copies.h"

namespace trainctl {

class Data;
class Job;
class Stream;
class World;
struct DataInfo;
struct RankContext;
struct RunSpec;
struct TrainingRequest;

// A sink that passes every event to several sinks.
class MetricsFanOut final : public MetricsSink {
 public:
  void add(std::unique_ptr<MetricsSink> sink) { sinks_.push_back(std::move(sink)); }
  // Adds a sink that receives each event before the others, such as one that adds events.
  void add_first(std::unique_ptr<MetricsSink> sink) { sinks_.insert(sinks_.begin(), std::move(sink)); }

  void restart(const RestartEvent& event) override {
    each([&](MetricsSink& sink) { sink.restart(event); });
  }
  void start(const StartEvent& event) override {
    each([&](MetricsSink& sink) { sink.start(event); });
  }
  void step(const StepEvent& event) override {
    each([&](MetricsSink& sink) { sink.step(event); });
  }
  void gradient_norms(const GradientNormsEvent& event) override {
    each([&](MetricsSink& sink) { sink.gradient_norms(event); });
  }
  void not_finite(const NotFiniteEvent& event) override {
    each([&](MetricsSink& sink) { sink.not_finite(event); });
  }
  void corruption(const CorruptionEvent& event) override {
    each([&](MetricsSink& sink) { sink.corruption(event); });
  }
  void refused_resize(const RefusedResizeEvent& event) override {
    each([&](MetricsSink& sink) { sink.refused_resize(event); });
  }
  void epoch(const EpochEvent& event) override {
    each([&](MetricsSink& sink) { sink.epoch(event); });
  }
  void checkpoint(const CheckpointEvent& event) override {
    each([&](MetricsSink& sink) { sink.checkpoint(event); });
  }
  void end(const EndEvent& event) override {
    each([&](MetricsSink& sink) { sink.end(event); });
  }

 private:
  template <class Call>
  void each(const Call& call) {
    for (const auto& sink : sinks_) call(*sink);
  }

  std::vector<std::unique_ptr<MetricsSink>> sinks_;
};

// The objects that rank 0 alone has (the peer has `memory`, too): the run directory, the sinks of its metrics, and the
// checkpoint to continue from.
struct RunFiles {
  std::unique_ptr<RunDirectory> directory;
  std::optional<LoadedCheckpoint> checkpoint;
  std::string resumed_from;                 // path of the checkpoint
  bool resumes_from_memory = false;         // the checkpoint is a copy in shared memory
  std::string foreign_keys;                 // --resume: what changed_keys_warning() says of the checkpoint's run, or ""
  std::string newest_stored;                // path of the newest checkpoint in the run directory, or --resume's
  std::string read_stored;                  // the same, if it was read and is whole; else ""
  std::optional<LoadedWeights> pretrained;  // if the run begins with the weights of a file
  std::unique_ptr<CheckpointStore> store;
  std::unique_ptr<MemoryStore> memory;     // null without checkpoint.memory_every
  std::unique_ptr<Prometheus> prometheus;  // listens already; is moved into the sink
  std::unique_ptr<MetricsFanOut> sink;
  DetailSink* details = nullptr;  // one of the sinks; null without TensorBoard
};

// Whether --resume names a checkpoint.
bool names_a_checkpoint(const std::string& resume);

// Returns a warning that names the keys that decide the result and differ between `config` and the run to which the
// checkpoint at `path` belongs; "" if there are none, or if the checkpoint belongs to no run.
std::string changed_keys_warning(const std::string& path, const Node& config);

// Finds the run directory and loads the checkpoint to continue from, on rank 0. After a restart, a whole copy in shared
// memory that is newer is loaded instead. Writes nothing. If another supervisor may start its ranks in the directory
// again, waits for that as long as it may take, and then goes on if it has not. Collective.
RunFiles open_run_files(const RunSpec& spec, const TrainingRequest& request, World& world, Stream& stream);

// Claims the run directory for this run, and opens its sinks. Removes copies in shared memory that an earlier start has
// left, or, after a restart, frees the space for copies of `bytes` bytes each. Called when everything else has been
// checked.
void claim_directory(RunFiles& files, const RunSpec& spec, const TrainingRequest& request, const Node& config,
                     const DataInfo& data, std::int64_t bytes);

// Makes a rank that shares the run directory with rank 0 log there: all its lines to logs/rank-N.log, its warnings and
// errors to log.txt. Tells the supervisor the path of log.txt. `path`: the run directory on rank 0, "" on the others.
// Returns whether this rank shares the directory. Collective.
bool join_log(const std::string& path, RankContext& context, Stream& stream);

// Returns the config with the section `resolved`, which has what the run measured or found out.
Node with_findings(Node config, const RunSpec& spec, const Data& opened, Job& job, bool chose_strategy);

// The strategy that was chosen when a resumed run began, if that was for the same number of ranks; else "". Called on
// rank 0.
std::string chosen_before(const RunFiles& files, int ranks);

}  // namespace trainctl
