// The keys of early stopping and of a falling learning rate.
#include "parallel/trainer/hooks/patience_options.h"

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

Keys<PlateauOptions> PlateauOptions::keys() {
  using O = PlateauOptions;
  return Keys<O>("reduce_on_plateau",
                 "Lowers the learning rate, which the schedule gives, when a value no longer improves, as Keras' "
                 "ReduceLROnPlateau.")
      .key("monitor", &O::monitor, "The metric that is watched, such as val_accuracy. auto: val_loss.")
      .key("mode", &O::mode,
           "Whether smaller (min) or greater (max) is better. auto: max for metrics that grow as a network gets better "
           "(accuracy, auc, r2_score and so on), min for losses and errors.")
      .key("factor", &O::factor, "What the learning rate is multiplied by.", Range{{}, 0.0, {}, 1.0})
      .key("patience", &O::patience,
           "Evaluations in turn that may be no better than the best one before the learning rate falls.", at_least(0))
      .key("min_delta", &O::min_delta, "What a value must be better by to count.", at_least(0))
      .key("cooldown", &O::cooldown, "Evaluations that are not counted after the learning rate fell.", at_least(0))
      .key("min_learning_rate", &O::min_learning_rate, "The learning rate falls no lower.", at_least(0));
}

}  // namespace trainctl
