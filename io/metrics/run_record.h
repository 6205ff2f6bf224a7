// The state of a run, collected from its events.
#pragma once

#include <optional>
#include <vector>

#include "core/exec/interfaces/metrics_sink.h"

namespace trainctl {

// The newest event of each kind since the last start of the run, and the events of earlier starts that are still valid
// after a resume.
struct RunRecord {
  std::optional<StartEvent> start;
  std::optional<StepEvent> step;  // its `gpus` is empty; see `gpus` below
  std::optional<EpochEvent> epoch;
  std::optional<CheckpointEvent> checkpoint;
  std::optional<EndEvent> end;    // empty if there is no end event
  std::vector<GpuSample> gpus;    // readings of the newest step that has readings
  double time = 0;                // time of the newest event in seconds since 1970; 0: there is none
  double checkpoint_time = 0;     // time of the newest checkpoint in seconds since 1970; 0: there is none
  double longest_gap = 0;         // longest time between two events since the start, in seconds
  double seconds_per_step = 0;    // smoothed time between successive steps; 0: unknown
  bool ends_with_a_step = false;  // whether the newest event is a step
};

}  // namespace trainctl
