// Ending a run whose monitored value no longer improves.
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

// Decides from the values of every evaluation. Equal on all ranks, since the values are.
class EarlyStopping final : public TrainingHook {
 public:
  // What it acts with; what is referred to outlives the hook.
  struct Actions {
    ResultWarnings* warnings = nullptr;  // null: it does not warn of a value that is missing
    bool speaks = false;                 // this rank is the one that logs
    // Gives the engine the weights of the best checkpoint. Collective. Null: they are not restored.
    std::function<void()> restore_best = {};
  };

  explicit EarlyStopping(const EarlyStoppingOptions& options) : EarlyStopping(options, Actions()) {}
  EarlyStopping(const EarlyStoppingOptions& options, Actions actions);

  void on_epoch_end(const TrainingState& state, double epochs, double scheduled) override;
  void on_train_end(const TrainingState& state) override;
  std::string why_end() const override { return why_end_; }
  void save(SnapshotMetadata& metadata) const override { metadata["early_stopping"] = text(); }
  void restore(const SnapshotMetadata& metadata) override;

  // Takes the values of an evaluation after `epochs` epochs, "val_loss" and so on. Whether the run is to end.
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
