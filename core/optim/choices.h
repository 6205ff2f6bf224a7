// The tables of the optimizers and learning rate schedules that a config can name.
#pragma once

namespace trainctl {

struct ChoiceTable;

// One choice for each optimizer rule (core/graph/ops/optimizers/): sgd, adam, ...
const ChoiceTable& optimizer_choices();
// One choice for each schedule: constant, step, cosine, ...
const ChoiceTable& schedule_choices();

}  // namespace trainctl
