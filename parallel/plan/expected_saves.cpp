// Applies the rule of parallel/trainer/loop/checkpoint_interval.h to predicted costs.
#include "parallel/plan/expected_saves.h"

#include <algorithm>
#include <cmath>

#include "parallel/checkpoint/staged_saver.h"
#include "parallel/plan/prediction.h"
#include "parallel/trainer/loop/checkpoint_interval.h"

namespace trainctl {

ExpectedSaves expected_saves(const Prediction& prediction, double failures, double storage, int savers) {
  const double write = storage > 0 ? static_cast<double>(prediction.checkpoint_bytes) / storage : 0;
  if (savers == 0 && write <= 0) return {};
  std::int64_t staged = 0;
  for (const PlannedStage& stage : prediction.stages) staged = std::max(staged, stage.memory.staged);
  ExpectedSaves saves;
  saves.stall = savers == 0 ? write : static_cast<double>(staged) / (savers * StagedSaver::copies) / assumed_copy_rate;
  saves.seconds = CheckpointInterval::bounded(best_save_interval(saves.stall, failures), write);
  const double steps = std::round(saves.seconds / prediction.step.seconds);
  saves.steps = static_cast<std::int64_t>(std::clamp(steps, 1.0, 1e15));
  return saves;
}

}  // namespace trainctl
