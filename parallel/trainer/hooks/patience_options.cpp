// The keys of early stopping and of the reduction of the learning rate on a plateau.
#include "parallel/trainer/hooks/patience_options.h"

namespace trainctl {

Keys<EarlyStoppingOptions> EarlyStoppingOptions::keys() {
  using O = EarlyStoppingOptions;
  return Keys<O>("early_stopping", "Ends the run when a value no longer improves, like Keras' EarlyStopping.")
      .key("monitor", &O::monitor, "The metric that is monitored, such as val_accuracy. auto: val_loss.")
      .key("mode", &O::mode,
           "Whether smaller (min) or greater (max) is better. auto: max for metrics that grow as a network improves "
           "(accuracy, auc, r2_score and so on), min for losses and errors.")
      .key("patience", &O::patience,
           "Number of consecutive evaluations without improvement after which the run ends; 0 and 1 are equivalent, as "
           "in Keras.",
           at_least(0))
      .key("min_delta", &O::min_delta, "The smallest difference that counts as an improvement.", at_least(0))
      .key("start_from_epoch", &O::start_from_epoch, "Number of epochs at the start that are not monitored.",
           at_least(0))
      .key("restore_best", &O::restore_best,
           "Whether the run ends with the weights of `checkpoints/best`, which then monitors the same metric.");
}

Keys<PlateauOptions> PlateauOptions::keys() {
  using O = PlateauOptions;
  return Keys<O>("reduce_on_plateau",
                 "Lowers the schedule's learning rate when a value no longer improves, like Keras' ReduceLROnPlateau.")
      .key("monitor", &O::monitor, "The metric that is monitored, such as val_accuracy. auto: val_loss.")
      .key("mode", &O::mode,
           "Whether smaller (min) or greater (max) is better. auto: max for metrics that grow as a network improves "
           "(accuracy, auc, r2_score and so on), min for losses and errors.")
      .key("factor", &O::factor, "The factor by which the learning rate is multiplied.", Range{{}, 0.0, {}, 1.0})
      .key("patience", &O::patience,
           "Number of consecutive evaluations without improvement after which the learning rate falls.", at_least(0))
      .key("min_delta", &O::min_delta, "The smallest difference that counts as an improvement.", at_least(0))
      .key("cooldown", &O::cooldown, "Number of evaluations that are not counted after the learning rate has fallen.",
           at_least(0))
      .key("min_learning_rate", &O::min_learning_rate, "The lower limit of the learning rate.", at_least(0));
}

}  // namespace trainctl
