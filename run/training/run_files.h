// The files of a run, which rank 0 keeps: its directory, the checkpoint that it goes on from, what it tells.
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

namespace trainctl {

class Data;
class Job;
class Stream;
struct DataInfo;
struct RankContext;
struct RunSpec;
struct TrainingRequest;

// One sink that hands every event to several.
class MetricsFanOut final : public MetricsSink {
 public:
  void add(std::unique_ptr<MetricsSink> sink) { sinks_.push_back(std::move(sink)); }

  void start(const StartEvent& event) override {
    each([&](MetricsSink& sink) { sink.start(event); });
  }
  void step(const StepEvent& event) override {
    each([&](MetricsSink& sink) { sink.step(event); });
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
  template <class Hand>
  void each(const Hand& hand) {
    for (const auto& sink : sinks_) hand(*sink);
  }

  std::vector<std::unique_ptr<MetricsSink>> sinks_;
};

// What rank 0 alone has: the run directory, what it tells, and the checkpoint to go on from.
struct RunFiles {
  std::unique_ptr<RunDirectory> directory;
  std::optional<LoadedCheckpoint> checkpoint;
  std::string resumed_from;                 // its path
  std::optional<LoadedWeights> pretrained;  // where a run begins with weights of a file
  std::unique_ptr<CheckpointStore> store;
  std::unique_ptr<Prometheus> prometheus;  // listens already; goes into the sink
  std::unique_ptr<MetricsFanOut> sink;
  DetailSink* details = nullptr;  // among the sinks; null without TensorBoard
};

// Whether --resume names a checkpoint.
bool names_a_checkpoint(const std::string& resume);

// Finds the run directory and loads the checkpoint to go on from; nothing is written yet.
RunFiles open_run_files(const RunSpec& spec, const TrainingRequest& request);

// Makes the run directory this run's, when everything else is accepted.
void claim_directory(RunFiles& files, const RunSpec& spec, const TrainingRequest& request, const Node& config,
                     const DataInfo& data);

// Where a rank that shares the run directory with rank 0 logs: all its lines go to logs/rank-N.log, what matters of
// them to log.txt. The supervisor learns where that is. `path` is rank 0's run directory, "" on the others. Returns
// whether this rank shares it. Collective.
bool join_log(const std::string& path, RankContext& context, Stream& stream);

// The run directory's config with what was found out since.
Node with_findings(Node config, const RunSpec& spec, const Data& opened, Job& job, bool chose_strategy);

// The strategy that a run which goes on was begun with, where that was chosen for as many ranks; "" where there is
// none. On rank 0.
std::string chosen_before(const RunFiles& files, int ranks);

}  // namespace trainctl
