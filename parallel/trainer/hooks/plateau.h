// Lowers the learning rate when a monitored value no longer improves.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "core/exec/interfaces/snapshot_metadata.h"
#include "core/metrics/patience.h"
#include "parallel/trainer/hooks/hook.h"
#include "parallel/trainer/hooks/patience_options.h"

namespace trainctl {

class ResultWarnings;

// Lowers a factor on the schedule's learning rate. The factor is equal on all ranks, since the monitored values are.
class Plateau final : public TrainingHook {
 public:
  // `warnings`: warns of missing values, may be null, and must outlive the hook. `logs`: whether this rank logs.
  explicit Plateau(const PlateauOptions& options, ResultWarnings* warnings = nullptr, bool logs = false);

  void on_epoch_end(const TrainingState& state, double epochs, double scheduled) override;
  double learning_rate(double scheduled) const override { return rate(scheduled); }
  void save(SnapshotMetadata& metadata) const override { metadata["reduce_on_plateau"] = text(); }
  void restore(const SnapshotMetadata& metadata) override;
  // Removes the best value so far from what restore() reads, which keeps the factor on the learning rate.
  static void forget_best(SnapshotMetadata& metadata);

  // Updates the state with the values of an evaluation ("val_loss" and so on). `scheduled`: the schedule's learning
  // rate of the next step. Returns whether the learning rate falls.
  bool lowers(double scheduled, const std::map<std::string, double>& values);
  // Returns the scheduled learning rate times the factor, but at least min_learning_rate or, if it is smaller, the
  // scheduled rate.
  double rate(double scheduled) const;

  std::string text() const;
  void read(const std::string& text);

 private:
  PlateauOptions options_;
  std::string monitor_;
  Patience patience_;
  double factor_ = 1;
  std::int64_t cooling_ = 0;  // number of remaining evaluations of the cooldown
  ResultWarnings* warnings_;
  bool logs_;
};

}  // namespace trainctl
