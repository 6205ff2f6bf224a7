// Builds the program of one rank from a model, its losses and an optimizer.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/program/parallelism.h"
#include "core/program/program_spec.h"

namespace trainctl {

// The micro-batches that a rank's samples are cut into: equal micro-batches, and possibly a smaller one at the end.
struct MicroBatches {
  std::int64_t samples = 0;  // samples of each of the equal micro-batches
  int count = 1;             // number of equal micro-batches
  std::int64_t rest = 0;     // samples of the smaller micro-batch; 0: there is none

  std::int64_t total() const { return samples * count + rest; }
  int all() const { return total() == 0 ? 0 : count + (rest > 0 ? 1 : 0); }
};

// Cuts `samples` samples into the smallest number of micro-batches of at most `largest` samples: equal ones and, if
// necessary, a smaller one.
MicroBatches cut_micro_batches(std::int64_t samples, std::int64_t largest);

// Cuts `samples` samples into equal micro-batches only: into the smallest number of micro-batches of at most `largest`
// samples. If these would be smaller than half of `largest` (for example, for a prime number of samples), uses the
// largest number of micro-batches that have at least half of `largest` samples.
MicroBatches cut_equally(std::int64_t samples, std::int64_t largest);

// Builds the training step of a rank. Its samples are cut into these micro-batches, and the gradients of the
// micro-batches are summed. Segments: forward; backward, which starts with loss, metrics and sums and overwrites the
// gradients; backward_accumulate for later micro-batches, which adds to the gradients; update. A rank without samples
// contributes zeros: its backward begins with ZeroGradients. The program contains the collectives of the parallelism
// and of the agreement. Lowering adds the compute copies of parameters (core/compile). The flat layout is the same for
// every number of samples. Problems are reported to the reader; the returned program is then unusable. On a mesh of
// several ranks, this function and those below set and check the placements of all tensors and throw the
// Error{internal} of check_placements() (placements.h).
//
// `max_micro_batches`: the largest number of micro-batches of any rank in the step. It is only used if all ranks need
// the same number (Parallelism::equal_micro_batches, or collectives of the data axis in the cut graph): this rank's
// additional micro-batches then compute on zeros with weight 0.
//
// With `shards`, micro-batches are logical shards.
Program training_program(const ProgramSpec& spec, const MicroBatches& micro_batches, Reader& reader,
                         const Parallelism& parallelism = {}, int max_micro_batches = 1,
                         const ShardedStep& shards = {});

// Builds the evaluation of one batch: a single segment forward with losses, metrics and count. Its sums have the
// addresses of the training program's sums, and cover only this batch and this rank (the host adds them up in float64).
// step.predictions are the network's outputs, softmax or sigmoid included, float32. Without samples, the sums are zero
// and there are no predictions.
Program evaluation_program(const ProgramSpec& spec, std::int64_t samples, Reader& reader,
                           const Parallelism& parallelism = {});

// Builds the prediction of one batch: a single segment forward with the same step.predictions as in evaluation. It
// needs neither losses, metrics, targets nor an optimizer. It has a flat layout of its own: weights are matched by
// name.
Program prediction_program(const ProgramSpec& spec, std::int64_t samples, Reader& reader,
                           const Parallelism& parallelism = {});

// Builds the program with which a language model continues texts: the prediction of the next token at each of a few
// positions of `samples` texts. Input number `tokens` of the spec has these positions: its samples are [T].
// step.predictions are the logits float32 [samples, T, vocabulary], without a final softmax. With `positions`, the
// program keeps the keys and values of as many earlier positions, and the position of each text's first token is a
// further input, after all inputs of the spec (cache_positions() in core/graph/passes). Without `positions`, the text
// begins at the first position. Programs for different T share their caches. Problems are reported to the reader; the
// returned program is then unusable.
struct GenerationProgram {
  Program program;
  std::string problem;  // why the network cannot keep keys and values; empty if it can
};
GenerationProgram generation_program(const ProgramSpec& spec, std::int64_t samples, std::size_t tokens,
                                     std::optional<std::int64_t> positions, Reader& reader);

}  // namespace trainctl
