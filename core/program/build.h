// From a model, its losses and an optimizer to the program of one rank.
#pragma once

#include <string>
#include <vector>

#include "core/program/network.h"
#include "core/program/parallelism.h"

namespace trainctl {

// The step of a rank that holds `samples` samples, cut into equal micro-batches whose gradients are summed. Segments:
// forward; backward, which starts with loss, metrics and sums and overwrites the gradients; backward_accumulate for
// later micro-batches, which adds to them; update. Without samples the rank contributes zeros: backward begins with
// ZeroGradients. Collectives are those of the parallelism, and the agreement's. Compute copies of parameters come with
// lowering. The flat layout is the same for every number of samples. Problems go to the reader, and the result is then
// unusable. On a mesh of several ranks the placements of all tensors are stated and checked (placements.h), here and
// below.
Program training_program(const ProgramSpec& spec, std::int64_t samples, int micro_batches, Reader& reader,
                         const Parallelism& parallelism = {});

// One batch of evaluation: a single segment forward with losses, metrics and count, whose sums lie where the training
// program's lie and are of this batch and rank only (the host adds them up in float64). step.predictions are the
// network's outputs, softmax or sigmoid included, float32. Without samples the sums are zero, and there are no
// predictions.
Program evaluation_program(const ProgramSpec& spec, std::int64_t samples, Reader& reader,
                           const Parallelism& parallelism = {});

// One batch of prediction: a single segment forward that gives step.predictions alone, those of evaluation. It needs
// neither loss, metrics and optimizer nor targets, and its flat layout is its own: weights go by their names.
Program prediction_program(const ProgramSpec& spec, std::int64_t samples, Reader& reader,
                           const Parallelism& parallelism = {});

// How many equal micro-batches a share of `samples` is cut into where full shares have micro-batches of `largest`: the
// fewest that are no larger; where these would be less than half as large (a prime number of samples), the most that
// are at least half as large. 1 for no samples.
int micro_batches_of(std::int64_t samples, std::int64_t largest);

}  // namespace trainctl
