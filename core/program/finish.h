// The last pass over a program: the flat layout, the agreement of all ranks, the gradient's norm and the update.
#pragma once

#include <vector>

#include "core/program/program.h"
#include "core/program/update_ops.h"

namespace trainctl {

// Completes a training program: assigns the flat layout; puts the sums into the last bucket that the update reduces
// over the data axis or, without such a bucket, into a bucket of their own; reduces the sums of outputs over the stages
// of the pipeline, and the agreement's flags over all axes; appends the agreement, norm, optimizer and statistics to
// the update. On a rank without samples, gradients and sums are set to zero.
Program finish_training(Program program, const UpdateSpec& update, const MeshRank& rank);

// Completes an evaluation program, which has the layout of the training program. Its sums are not reduced over ranks.
Program finish_evaluation(Program program, const Program& training);

// Completes a prediction program, with a flat layout of its own and without sums.
Program finish_prediction(Program program);

}  // namespace trainctl
