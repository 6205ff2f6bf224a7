// The state of a run as its events tell it, folded into one value.
#pragma once

#include <optional>
#include <vector>

#include "core/exec/interfaces/metrics_sink.h"

namespace trainctl {

// The newest event of each kind since the run was started last; of those before, what a run that goes on still has.
struct RunRecord {
  std::optional<StartEvent> start;
  std::optional<StepEvent> step;  // without `gpus`, which stand below
  std::optional<EpochEvent> epoch;
  std::optional<CheckpointEvent> checkpoint;
  std::optional<EndEvent> end;    // none: no end has been written
  std::vector<GpuSample> gpus;    // of the newest step that has some
  double time = 0;                // of the newest event, in seconds since 1970; 0: there is none
  double checkpoint_time = 0;     // likewise
  double longest_gap = 0;         // seconds between two events since the start
  double seconds_per_step = 0;    // smoothed, of steps alone; 0: unknown
  bool ends_with_a_step = false;  // the newest event is one
};

}  // namespace trainctl
