// The options of early stopping, and its decision.
#include "parallel/trainer/early_stopping.h"

namespace trainctl {

Keys<EarlyStoppingOptions> EarlyStoppingOptions::keys() {
  using O = EarlyStoppingOptions;
  return Keys<O>("early_stopping", "Ends the run when a value no longer improves, as Keras' EarlyStopping.")
      .key("monitor", &O::monitor, "The metric that is watched, such as val_accuracy. auto: val_loss.")
      .key("mode", &O::mode,
           "Whether smaller (min) or greater (max) is better. auto: max for metrics that grow as a network gets better "
           "(accuracy, auc, r2_score and so on), min for losses and errors.")
      .key("patience", &O::patience,
           "Evaluations in turn that may be no better than the best one before the run ends with the last of them; 0 "
           "and 1 are the same, as in Keras.",
           at_least(0))
      .key("min_delta", &O::min_delta, "What a value must be better by to count.", at_least(0))
      .key("start_from_epoch", &O::start_from_epoch, "Epochs that are not looked at.", at_least(0))
      .key("restore_best", &O::restore_best,
           "Whether the run ends with the weights of `checkpoints/best`, which then watches the same metric.");
}

EarlyStopping::EarlyStopping(const EarlyStoppingOptions& options)
    : options_(options),
      monitor_(options.monitor.or_else("val_loss")),
      patience_(options.mode.or_else(mode_of(monitor_)), options.min_delta) {}

bool EarlyStopping::stops(double epochs, const std::map<std::string, double>& values) {
  if (epochs <= static_cast<double>(options_.start_from_epoch)) return false;
  const auto found = values.find(monitor_);
  if (found == values.end()) return false;
  const bool better = patience_.improves(found->second);
  return !better && epochs > 1 && patience_.waited() >= options_.patience;
}

}  // namespace trainctl
