// Lowering the learning rate when a monitored value no longer improves.
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

// Lowers a factor on the learning rate that the schedule gives. Equal on all ranks, since the values are.
class Plateau final : public TrainingHook {
 public:
  // `warnings`: null: it does not warn of a value that is missing; they outlive the hook. `speaks`: this rank is the
  // one that logs.
  explicit Plateau(const PlateauOptions& options, ResultWarnings* warnings = nullptr, bool speaks = false);

  void on_epoch_end(const TrainingState& state, double epochs, double scheduled) override;
  double learning_rate(double scheduled) const override { return rate(scheduled); }
  void save(SnapshotMetadata& metadata) const override { metadata["reduce_on_plateau"] = text(); }
  void restore(const SnapshotMetadata& metadata) override;

  // Takes the values of an evaluation, "val_loss" and so on. `scheduled` is the schedule's learning rate of the next
  // step. Whether the learning rate falls.
  bool lowers(double scheduled, const std::map<std::string, double>& values);
  // The learning rate for one that the schedule gives: no lower than the least, unless the schedule's is.
  double rate(double scheduled) const;

  std::string text() const;
  void read(const std::string& text);

 private:
  PlateauOptions options_;
  std::string monitor_;
  Patience patience_;
  double factor_ = 1;
  std::int64_t cooling_ = 0;  // evaluations that are left of the cooldown
  ResultWarnings* warnings_;
  bool speaks_;
};

}  // namespace trainctl
