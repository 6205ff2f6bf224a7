// Decides whether a run ends early.
#include "parallel/trainer/hooks/early_stopping.h"

#include "core/base/format.h"
#include "core/base/log.h"
#include "core/base/table.h"
#include "parallel/trainer/hooks/result_warnings.h"
#include "parallel/trainer/loop/training_state.h"

namespace trainctl {

EarlyStopping::EarlyStopping(const EarlyStoppingOptions& options, Actions actions)
    : options_(options),
      monitor_(options.monitor.or_else("val_loss")),
      patience_(options.mode.or_else(mode_of(monitor_)), options.min_delta),
      actions_(std::move(actions)) {}

void EarlyStopping::on_epoch_end(const TrainingState& state, double epochs, double) {
  const std::map<std::string, double> values = state.values();
  if (actions_.warnings != nullptr) actions_.warnings->missing("early_stopping", monitor_, values);
  if (!stops(epochs, values)) return;
  why_end_ = format("early stopping: {} has not improved for {}", monitor_, counted(patience_.waited(), "epoch"));
  if (actions_.logs) log::info(why_end_);
}

// Restores the best weights, unless the last ones are the best.
void EarlyStopping::on_train_end(const TrainingState& state) {
  if (!options_.restore_best || !actions_.restore_best || !state.best || state.best->step == state.step) return;
  actions_.restore_best();
  if (!actions_.logs) return;
  log::info(format("restored the best weights, those of step {}: {} {:.4g}", state.best->step, state.best->monitor,
                   state.best->value));
}

void EarlyStopping::restore(const SnapshotMetadata& metadata) {
  const auto found = metadata.find("early_stopping");
  if (found != metadata.end()) read(found->second);
}

bool EarlyStopping::stops(double epochs, const std::map<std::string, double>& values) {
  if (epochs <= static_cast<double>(options_.start_from_epoch)) return false;
  const auto found = values.find(monitor_);
  if (found == values.end()) return false;
  const bool better = patience_.improves(found->second);
  return !better && epochs > 1 && patience_.waited() >= options_.patience;
}

}  // namespace trainctl
