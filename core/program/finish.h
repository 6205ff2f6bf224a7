// The last form of a program: what lies where in the flat regions, the agreement of all ranks, the gradient's norm and
// the update.
#pragma once

#include <vector>

#include "core/optim/optimizer.h"
#include "core/program/program.h"

namespace trainctl {

// A running statistic that moves: moving = momentum * moving + (1 - momentum) * sum / count.
struct StatisticUpdate {
  TensorId sum = no_tensor;
  TensorId moving = no_tensor;
  float momentum = 0;
};

struct UpdateSpec {
  const OptimizerOptions& optimizer;
  Place place;           // of the optimizer in the config
  double clip_norm = 0;  // 0: none
  std::vector<StatisticUpdate> statistics;
};

// Completes a training program: assigns the flat layout; puts the sums into the last bucket that the update reduces
// over the data axis, or, where there is none, reduces them by themselves; joins the flags of the agreement over the
// other axes; and writes the update behind what strategies put there. A rank without samples gets zeros for gradients
// and sums.
Program finish_training(Program program, const UpdateSpec& update, const MeshRank& rank);

// Completes an evaluation program with the layout of the training program; its sums are this rank's own.
Program finish_evaluation(Program program, const Program& training);

// Completes a prediction program, which has no sums, with a layout of its own.
Program finish_prediction(Program program);

}  // namespace trainctl
