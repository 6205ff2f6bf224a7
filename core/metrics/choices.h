// The tables of the losses and metrics that a config can name.
#pragma once

namespace trainctl {

struct ChoiceTable;

// One choice for each loss rule (core/graph/ops/losses/): sparse_categorical_crossentropy, mean_squared_error, ...
const ChoiceTable& loss_choices();
// One choice for each metric rule (core/graph/ops/metrics/): accuracy, top_k_categorical_accuracy, ...
const ChoiceTable& metric_choices();

}  // namespace trainctl
