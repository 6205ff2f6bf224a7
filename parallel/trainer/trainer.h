// The training loop: steps, evaluation, checkpoints, and an end on which all ranks agree.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/backend/communicator.h"
#include "core/exec/engine.h"
#include "core/exec/interfaces/batch_source.h"
#include "core/exec/interfaces/metrics_sink.h"
#include "core/exec/interfaces/snapshot.h"
#include "core/exec/observe/op_recorder.h"
#include "core/metrics/means.h"
#include "parallel/health/gpus.h"
#include "parallel/health/replicas.h"
#include "parallel/trainer/early_stopping.h"
#include "parallel/trainer/histogram_pass.h"
#include "parallel/trainer/local_steps.h"
#include "parallel/trainer/loss_scale.h"
#include "parallel/trainer/phases.h"
#include "parallel/trainer/plateau.h"
#include "parallel/trainer/programs.h"
#include "parallel/trainer/regularization.h"
#include "parallel/trainer/result_warnings.h"
#include "parallel/trainer/sample_watch.h"
#include "parallel/trainer/snapshot_saver.h"

namespace trainctl {

// When training does what. All counts are steps; 0 means never or no limit.
struct TrainingPlan {
  std::int64_t steps_per_epoch = 1;
  std::int64_t total_steps = 0;
  PhaseStart phase;            // with whose first step the optimizer and the schedule begin
  std::int64_t phase_end = 0;  // the phase's last step count, unless early stopping ends it before
  std::size_t phases = 1;      // of the run
  double max_seconds = 0;
  std::int64_t checkpoint_every = 0;
  std::int64_t verify_every = 0;
  std::int64_t histograms_every = 0;
  // Replicas take so many steps alone before they are averaged (local_steps.h), which they are at the end of an epoch
  // and of the run, too. What is due in between comes with the next average: reports, checkpoints, comparisons of
  // replicas, and a stop. 1: gradients are summed in every step.
  std::int64_t sync_every = 1;
  std::string monitor;  // "val_accuracy"; empty: nothing is compared, the last checkpoint is the best
  bool monitor_maximum = true;
  std::int64_t log_every = 10;  // speeds are means since the last multiple
  std::function<double(std::int64_t step)> learning_rate;
  bool scales_loss = false;        // in float16
  bool reproducible = false;       // batches are cut into logical shards
  std::int64_t profile_first = 0;  // steps [first, end), from 0, are recorded
  std::int64_t profile_end = 0;
  std::optional<EarlyStoppingOptions> early_stopping;
  std::optional<PlateauOptions> reduce_on_plateau;
  std::vector<int> mesh;                     // data, pipeline, tensor
  std::map<std::string, std::string> facts;  // kept with every checkpoint: kernel choices, data fingerprint
};

// Everything a trainer works with; all of it outlives the trainer. The sink is null on other ranks than 0.
struct TrainerParts {
  Engine& engine;
  Communicator& world;
  Communicator* replicas;  // along the data axis: the ranks with the same weights; null: this one alone has them
  Stream& stream;          // for the trainer's own collectives: runs at once
  const RunPrograms& programs;
  SnapshotSaver& saver;
  BatchSource& training;
  BatchSource* validation = nullptr;  // one pass in order for each evaluation; null: none
  MetricsSink* sink = nullptr;
  std::function<bool()> stop_requested;
  OpRecorder* profiler = nullptr;       // sees the steps that the plan names
  GpuWatch* gpus = nullptr;             // on all ranks or on none
  HistogramPass* histograms = nullptr;  // likewise; not null where the plan has histograms
  SampleWatch* samples = nullptr;       // likewise: of every evaluation
  // Called on all ranks after a step behind which replicas are equal, with the steps done; no later step has begun.
  // Null: nothing.
  std::function<void(std::int64_t steps)> after_step;
  // Gives the engine the weights of the best checkpoint. Called on all ranks, where early stopping restores them.
  std::function<void()> restore_best;
  // Called on rank 0 with the longest time in seconds between two moments at which all ranks look for a request to
  // stop, when it has grown, and before and after a checkpoint is written. Null: nothing.
  std::function<void(double longest, bool saves)> tells_stop_time;
};

// Where a run stands: what a snapshot carries beside weights and state.
struct RunPosition {
  std::int64_t step = 0;  // steps done
  bool has_best = false;
  double best_value = 0;
  std::int64_t best_step = 0;
};

class Trainer {
 public:
  Trainer(TrainerParts parts, TrainingPlan plan);

  // Goes on from a snapshot whose weights and state the engine already holds. `is_stored`: it is a checkpoint of this
  // run's store, so that it need not be saved again where no step follows.
  void resume(const Snapshot& snapshot, bool is_stored);

  // Trains to the end. Returns completed or stopped, filled in on all ranks (weights_sha256 on rank 0 only).
  // Throws Error{diverged} after a NaN or Inf, on all ranks alike; Error{peer} where replicas differ.
  EndEvent run();

  // Whether nothing is left to do in the phase: its checkpoint names the next one, if there is one.
  bool ended_phase() const;

  std::int64_t step() const { return position_.step; }  // steps done
  double epoch() const { return static_cast<double>(position_.step) / static_cast<double>(plan_.steps_per_epoch); }

 private:
  // A step that was started.
  struct Started {
    Engine::StepInput input;
    int program = 0;
    std::int64_t samples = 0;  // of all ranks
    double start_seconds = 0;
    double waited_seconds = 0;  // for its data
    DataPosition behind;        // the position after its data
  };

  void run_steps();
  void run_step();
  void start_step();
  void finish_step();
  std::int64_t next_average(std::int64_t step) const;
  bool averages_after(std::int64_t step) const { return !local_ || next_average(step - 1) == step; }
  std::int64_t next_synchronous_step() const;
  bool records(std::int64_t step) const;
  void report_step(const Started& step);
  double step_loss() const;
  bool finished() const;
  bool ends_early() const { return !early_end_.empty(); }
  bool stop_wanted() const;
  void note_stop_time(double seconds);
  void tell_stop_time(bool saves) const;
  bool evaluate_weights();
  bool evaluation_is_due() const;
  void require_weight() const;
  void hint_at_scale() const;
  void restart_window();
  StepShares shares_of(double seconds) const;
  void save();
  Snapshot snapshot();
  bool update_best();
  void watch_values();
  void restore_best();
  void verify_replicas();
  void check_finite(const Started& step);
  [[noreturn]] void diverged(const Started& step, const std::string& cause);

  TrainerParts parts_;
  TrainingPlan plan_;
  RunPosition position_;
  std::deque<Started> started_;  // steps under way, the oldest first
  StepResult result_;
  int last_program_ = 0;       // of the step that was finished last
  double gradient_scale_ = 1;  // from its gradients to those of the mean loss
  LossScale loss_scale_;
  const std::vector<MetricResult>& results_;  // the loss first
  MetricMeans epoch_means_;
  std::map<std::string, double> train_;  // of the last epoch
  std::map<std::string, double> validation_;
  std::optional<ReplicaCheck> replicas_;  // none: this rank alone has its weights
  std::optional<LocalSteps> local_;       // where replicas take steps alone
  std::optional<EarlyStopping> early_stopping_;
  std::optional<Plateau> plateau_;
  ResultWarnings warnings_;
  RegularizationLoss regularization_;
  bool is_best_ = false;        // the last evaluation was the best, and nothing was trained since
  bool stop_ = false;           // the ranks agreed to stop
  std::string early_end_;       // why the run ends before its last step; empty: it does not
  DataPosition data_position_;  // behind the steps done
  std::int64_t saved_step_ = -1;
  double longest_between_looks_ = 0;  // for a request to stop, in seconds; 0: a few
  double start_seconds_ = 0;
  double epoch_start_ = 0;
  // Since the last multiple of log_every:
  double window_start_ = 0;
  double window_waited_ = 0;
  std::int64_t window_samples_ = 0;
  StepShares window_parts_;  // in seconds
};

}  // namespace trainctl
