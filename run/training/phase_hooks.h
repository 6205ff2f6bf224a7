// The hooks of a phase's training loop, and the objects that they use.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "core/exec/interfaces/batch_source.h"

namespace trainctl {

class Communicator;
class Job;
class ResultWarnings;
class SampleWatch;
class SpoiledBatches;
class StepReports;
class StragglerWatch;
class TrainingHook;
struct RankRun;
struct RunSpec;
struct SnapshotPlan;
struct TrainingPlan;

class PhaseHooks {
 public:
  // All parts must outlive the object.
  struct Parts {
    RankRun& run;
    const RunSpec& spec;  // config of the phase
    Job& job;
    const SnapshotPlan& snapshots;
    const TrainingPlan& plan;
    Communicator* replicas = nullptr;  // see HookContext
    BatchSource& training;
    BatchSource* validation = nullptr;  // null: there is none
    std::function<void()> restore_best;
    std::function<void()> wait_for_checkpoints;
  };

  // Called after begin_run(), which opens the files that the hooks write to. Collective.
  explicit PhaseHooks(Parts parts);
  ~PhaseHooks();

  // The hooks in the order in which the loop calls them.
  std::vector<TrainingHook*> hooks() const;
  // The batches of training in which the config's faults spoil values; null: the run rehearses no faults.
  BatchSource* spoiled() const;
  // Shows samples of evaluations; null: no samples are shown.
  SampleWatch* samples() const { return samples_.get(); }
  StepReports& reports() const { return *reports_; }
  ResultWarnings& warnings() const { return *warnings_; }

 private:
  void make_hooks(const Parts& parts);
  void rehearse_faults(const Parts& parts);

  std::unique_ptr<SampleWatch> samples_;
  std::unique_ptr<StragglerWatch> stragglers_;  // null: there is one rank
  std::unique_ptr<StepReports> reports_;
  std::unique_ptr<ResultWarnings> warnings_;
  std::unique_ptr<SpoiledBatches> spoiled_;
  std::vector<std::unique_ptr<TrainingHook>> hooks_;  // without the warnings
};

}  // namespace trainctl
