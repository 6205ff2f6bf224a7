// From a model, its losses and an optimizer to the program of one rank.
#pragma once

#include <string>
#include <vector>

#include "core/program/parallelism.h"
#include "core/program/program_spec.h"

namespace trainctl {

// How the samples of a rank are cut: equal micro-batches, and behind them perhaps one that is smaller.
struct MicroBatches {
  std::int64_t samples = 0;  // of one of the equal ones
  int count = 1;             // of the equal ones
  std::int64_t rest = 0;     // samples of the smaller one; 0: there is none

  std::int64_t total() const { return samples * count + rest; }
  int all() const { return total() == 0 ? 0 : count + (rest > 0 ? 1 : 0); }
};

// Cuts `samples` samples into as few micro-batches of at most `largest` samples as there can be: equal ones, and a
// smaller one where it must be.
MicroBatches cut_micro_batches(std::int64_t samples, std::int64_t largest);

// The same in equal micro-batches alone: the fewest no larger than `largest`; where these would be less than half as
// large (a prime number of samples), the most micro-batches at least half as large.
MicroBatches cut_equally(std::int64_t samples, std::int64_t largest);

// Builds the training step of a rank whose samples are cut into these micro-batches, whose gradients are summed.
// Segments: forward; backward, which starts with loss, metrics and sums and overwrites the gradients;
// backward_accumulate for later micro-batches, which adds to the gradients; update. A rank without samples contributes
// zeros: its backward begins with ZeroGradients. The collectives are those of the parallelism and of the agreement.
// Lowering adds the compute copies of parameters (core/compile). The flat layout is the same for every number of
// samples. Problems are reported to the reader; the returned program is then unusable. On a mesh of several ranks this
// function and those below state and check the placements of all tensors (placements.h) and throw its Error{internal}.
//
// `most_micro_batches`: of the ranks of a step the one that has most; only looked at where all need as many
// (Parallelism::equal_micro_batches, and collectives of the data axis in the cut graph). Those that this rank lacks
// compute on zeros with weight 0.
//
// With `shards`, micro-batches are logical shards.
Program training_program(const ProgramSpec& spec, const MicroBatches& micro_batches, Reader& reader,
                         const Parallelism& parallelism = {}, int most_micro_batches = 1,
                         const ShardedStep& shards = {});

// Builds the evaluation of one batch: a single segment forward with losses, metrics and count. Its sums lie where the
// training program's sums lie, and cover this batch and this rank only (the host adds them up in float64).
// step.predictions are the network's outputs, softmax or sigmoid included, float32. Without samples the sums are zero,
// and there are no predictions.
Program evaluation_program(const ProgramSpec& spec, std::int64_t samples, Reader& reader,
                           const Parallelism& parallelism = {});

// Builds the prediction of one batch: a single segment forward whose step.predictions are those of evaluation. It needs
// neither losses, metrics, targets nor an optimizer. Its flat layout is its own: weights are matched by name.
Program prediction_program(const ProgramSpec& spec, std::int64_t samples, Reader& reader,
                           const Parallelism& parallelism = {});

}  // namespace trainctl
