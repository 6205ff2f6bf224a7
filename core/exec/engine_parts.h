// The records that an engine keeps for each program, and for each step under way.
#pragma once

#include <map>
#include <utility>

#include "core/exec/engine.h"

namespace trainctl {

// The regions that keep their values after a step.
inline constexpr Region kept_regions[] = {Region::parameters, Region::statistics, Region::states, Region::averages};

// A program with its bound kernels and its work.
struct Engine::Bound {
  std::unique_ptr<StepWork> work;
  std::vector<std::unique_ptr<Kernel>> kernels;
  // The units by compute stream and segment, in slot 0.
  std::map<std::pair<int, int>, std::vector<StepUnit>> segments;
  bool trains = false;                          // whether the program changes the weights
  bool prepares = false;                        // whether it writes all compute copies before its first forward pass
  std::vector<std::vector<CopyRange>> results;  // for each step buffer: the copies of the results to the host
};

// The memory of one step under way, and its state.
struct Engine::StepBuffers {
  Memory host;                  // staging buffer with the layout of MemoryPlan::staging; page-locked
  std::byte* device = nullptr;  // the same buffer on the device; null if kernels read the host's memory
  Memory results;               // host memory: the scalars, then the sums at the end of the gradient region
  StepSources sources;
  bool direct = false;            // whether inputs are copied from the batch's own memory
  std::unique_ptr<Event> staged;  // recorded after the copy to the device
  std::unique_ptr<Event> done;
  int program = 0;
  PhaseSeconds seconds{};
};

}  // namespace trainctl
