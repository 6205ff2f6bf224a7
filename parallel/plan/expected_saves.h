// Predicts how often `checkpoint.every: auto` saves a checkpoint.
#pragma once

#include <cstdint>

namespace trainctl {

struct Prediction;

// The bytes per second at which a rank is assumed to copy its shard of a checkpoint. The interval changes only with the
// square root of this rate.
inline constexpr double assumed_copy_rate = 10e9;

// The checkpoints that `checkpoint.every: auto` saves.
struct ExpectedSaves {
  double stall = 0;        // seconds for which a save stops training
  double seconds = 0;      // from one save to the next
  std::int64_t steps = 0;  // the same in steps
};

// `failures`: mean time between failures of the run in seconds. `storage`: bytes per second at which a checkpoint is
// written; 0: unknown. `savers`: the number of savers with copies in host memory; 0: training waits while a checkpoint
// is written, and the result is empty, with 0 steps, if `storage` is unknown.
ExpectedSaves expected_saves(const Prediction& prediction, double failures, double storage, int savers);

}  // namespace trainctl
