// Ends a run whose monitored value no longer improves.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "core/exec/interfaces/snapshot_metadata.h"
#include "core/metrics/patience.h"
#include "parallel/trainer/hooks/hook.h"
#include "parallel/trainer/hooks/patience_options.h"

namespace trainctl {

class ResultWarnings;

// Decides after every evaluation from its values. The decision is equal on all ranks, since the values are.
class EarlyStopping final : public TrainingHook {
 public:
  // Objects that the hook uses; they must outlive the hook.
  struct Actions {
    ResultWarnings* warnings = nullptr;  // null: no warning of a missing value
    bool logs = false;                   // whether this rank logs
    // Loads the weights of the best checkpoint into the engine; all ranks call it. Null: the weights are not restored.
    std::function<void()> restore_best = {};
  };

  explicit EarlyStopping(const EarlyStoppingOptions& options) : EarlyStopping(options, Actions()) {}
  EarlyStopping(const EarlyStoppingOptions& options, Actions actions);

  void on_epoch_end(const TrainingState& state, double epochs, double scheduled) override;
  void on_train_end(const TrainingState& state) override;
  std::string why_end() const override { return why_end_; }
  void save(SnapshotMetadata& metadata) const override { metadata["early_stopping"] = text(); }
  void restore(const SnapshotMetadata& metadata) override;
  // Removes the best value so far from what restore() reads, so that the count of epochs begins anew.
  static void forget_best(SnapshotMetadata& metadata) { metadata.erase("early_stopping"); }

  // Updates the state with the values of an evaluation after `epochs` epochs ("val_loss" and so on). Returns whether
  // the run ends.
  bool stops(double epochs, const std::map<std::string, double>& values);
  std::string text() const { return patience_.text(); }
  void read(const std::string& text) { patience_.read(text); }

 private:
  EarlyStoppingOptions options_;
  std::string monitor_;
  Patience patience_;
  Actions actions_;
  std::string why_end_;
};

}  // namespace trainctl
