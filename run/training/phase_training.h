// Training a phase of a run on one rank: its job, its batches, and the loop with all that belongs to it.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "core/exec/observe/op_recorder.h"
#include "io/checkpoint/store.h"
#include "parallel/mesh/axes.h"
#include "parallel/trainer/hooks/result_warnings.h"
#include "parallel/trainer/loop/loop.h"
#include "parallel/trainer/sample_watch.h"
#include "run/training/rank_run.h"
#include "run/training/scaling_watch.h"

namespace trainctl {

// How a phase ended, and whether the next one follows.
struct PhaseEnd {
  EndEvent event;
  bool next_follows = false;
};

class PhaseTraining {
 public:
  // Builds everything, of a phase that begins or that goes on from the checkpoint in run.files, whose position is
  // `resumed`. `begins`: it is the first that this process trains, with which the run begins (begin_run). `run` and
  // `resumed` outlive the object. Collective; throws what the parts throw.
  PhaseTraining(RankRun& run, const PhaseStart& phase, const std::optional<Snapshot>& resumed, bool begins);

  // Trains the phase. Collective; throws what the loop throws, after telling the sink of it.
  PhaseEnd train();

 private:
  void open_batches(const DataPosition& start);
  void make_hooks();
  LoopParts loop_parts();
  std::optional<Evaluation> evaluate_validation(std::int64_t step);
  void write_observations();

  RankRun& run_;
  Communicator& world_;
  Stream& stream_;
  RunSpec spec_;  // of the phase
  PhaseStart phase_;
  Job job_;
  SnapshotPlan snapshots_;
  TrainingPlan plan_;
  std::function<bool()> stop_requested_;
  std::unique_ptr<BatchSource> training_;
  std::unique_ptr<BatchSource> validation_;  // null: there is none
  MeshAxes axes_;
  FolderSink folder_;
  OpRecorder profiler_;
  std::unique_ptr<StagedSaver> saver_;
  std::unique_ptr<SampleWatch> samples_;   // null: no samples are shown
  std::unique_ptr<ScalingWatch> scaling_;  // null: it is no run of verify-scaling
  std::unique_ptr<ResultWarnings> warnings_;
  std::vector<std::unique_ptr<TrainingHook>> hooks_;
  std::unique_ptr<Checkpoints> checkpoints_;
  std::unique_ptr<StepReports> reports_;
  FiniteCheck finite_;
  std::unique_ptr<TrainingLoop> loop_;
};

}  // namespace trainctl
