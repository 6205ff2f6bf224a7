// The table of optimizers.
#include "core/optim/optimizer.h"

#include "core/optim/adam.h"
#include "core/optim/sgd.h"

namespace trainctl {

void OptimizerOptions::fill(OptimizerUpdate& update, std::vector<UpdateRange> ranges, double clip_norm) const {
  update.ranges = std::move(ranges);
  update.clip_norm = static_cast<float>(clip_norm);
  update.weight_decay = static_cast<float>(weight_decay);
}

const ChoiceTable& optimizer_choices() {
  static const ChoiceTable table{"optimizer", {SgdOptions::keys(), AdamOptions::keys(), AdamWOptions::keys()}};
  return table;
}

}  // namespace trainctl
