// A step that was not finite, and the return to a checkpoint after such a step.
#pragma once

#include <cstdint>
#include <string>

#include "core/exec/interfaces/batch_source.h"
#include "parallel/trainer/loop/skipped_batches.h"

namespace trainctl {

// What is kept about a step that ends a run.
struct NotFiniteStep {
  std::int64_t number = 0;           // counted from 1
  DataPosition position;             // position of the batch's first sample
  std::int64_t samples = 0;          // number of samples of the batch, of all ranks
  std::string cause;                 // "a loss is not finite"
  bool state_is_that_before = true;  // false: a later step has already changed the weights
};

// The request to go on from a checkpoint, with one more batch that is skipped.
struct Rollback {
  std::int64_t step = 0;     // number of steps done before the step that was not finite
  double epoch = 0;          // at that step
  std::int64_t skipped = 0;  // the step, counted from 0, whose batch is skipped from now on
  std::string cause;
  SkippedBatches batches;  // all batches that are skipped, this one included
};

}  // namespace trainctl
