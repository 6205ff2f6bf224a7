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
// step.predictions are the network's outputs, softmax or sigmoid included, float32; no_tensor for an output whose loss
// is fused with its last product, or whose positions have their classes on several ranks. Without samples, the sums are
// zero and there are no predictions.
Program evaluation_program(const ProgramSpec& spec, std::int64_t samples, Reader& reader,
                           const Parallelism& parallelism = {});

// Builds the prediction of one batch: a single segment forward with the same step.predictions as in evaluation. It
// needs neither losses, metrics, targets nor an optimizer. It has a flat layout of its own: weights are matched by
// name.
Program prediction_program(const ProgramSpec& spec, std::int64_t samples, Reader& reader,
                           const Parallelism& parallelism = {});

// What a program computes that continues texts.
struct GenerationRequest {
  std::int64_t samples = 1;  // texts
  std::size_t tokens = 0;    // number of the input that has the tokens; its samples are [T]: T positions of each text
  // The number of positions whose keys and values the program keeps. The position of each text's first token is then a
  // further input, after all inputs of the spec (cache_positions() in core/graph/passes). Empty: the program keeps
  // nothing, and texts begin at the first position.
  std::optional<std::int64_t> positions;
  bool predicts = true;  // whether it computes logits; otherwise it only fills its caches
};

// A program that continues texts, or the reasons why there is none, as in CachedGraph.
struct GenerationProgram {
  Program program;
  std::string problem, not_causal;
};

// Builds the program with which a language model continues texts: the prediction of the next token at a few positions.
// step.predictions are the logits float32 [samples, T, vocabulary], without a final softmax. Programs for different T
// share their caches. Problems are reported to the reader; the returned program is then unusable.
GenerationProgram generation_program(const ProgramSpec& spec, const GenerationRequest& request, Reader& reader);

}  // namespace trainctl
