// The times of measured steps, and the figures that follow from them.
#pragma once

#include <cstdint>
#include <vector>

#include "core/exec/engine.h"

namespace trainctl {

// One step, from the end of the one before it to its own.
struct StepTime {
  double seconds = 0;
  std::int64_t samples = 0;  // over all ranks
  double waited = 0;         // of the host, for the loader
  Engine::Parts parts;
};

// In seconds of a step; means, so that the parts' sum is the step's.
struct StepFigures {
  double median = 0;
  double mean = 0;
  double samples_per_second = 0;  // over time that passed, waits included: the median of five windows
  double waited = 0;              // may lie beside the device's work
  Engine::Parts parts;
  double idle = 0;   // of the mean step, what is none of `parts`
  double data = 0;   // the upload, and of the waiting what left the device idle
  double other = 0;  // the rest
};

// There must be at least one step; those with fewer samples than others count in samples_per_second alone.
StepFigures figures_of(const std::vector<StepTime>& steps);

}  // namespace trainctl
