// Logs the warning of samples that are not scaled.
#include "parallel/trainer/hooks/scale_hint.h"

#include "core/base/format.h"
#include "core/base/log.h"
#include "parallel/trainer/loop/training_state.h"

namespace trainctl {

void ScaleHint::on_step_end(const TrainingState& state, double loss) {
  constexpr double suspicious_ratio = 4;
  if (state.step > first_ || chance_loss_ == 0 || loss < suspicious_ratio * chance_loss_ + 2) return;
  log::warning(
      format("the first loss is {:.4g}, far above the {:.4g} of random guesses: most likely the samples are not "
             "scaled; add data.transform: [rescale: 1/255] for bytes, or a normalize",
             loss, chance_loss_));
}

}  // namespace trainctl
