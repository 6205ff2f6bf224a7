// What an engine keeps for each program, and for each step that is under way.
#pragma once

#include "core/exec/engine.h"

namespace trainctl {

// A program bound to its places.
struct Engine::Bound {
  std::unique_ptr<StepWork> work;
  std::vector<std::unique_ptr<Kernel>> kernels;
  std::vector<std::vector<StepUnit>> segments;  // what each runs, in slot 0
  bool trains = false;                          // it changes the weights
  std::vector<std::vector<CopyPart>> results;   // that the host reads, by the number of the buffers
};

// Where the values of one step lie while it is under way.
struct Engine::StepBuffers {
  Memory host;                  // as the plan's staging says; page-locked
  std::byte* device = nullptr;  // the same on the device; null where the host's memory is read
  Memory results;               // in the host's memory: the scalars, then the reduced tail of the gradient region
  StepSources sources;
  bool direct = false;            // the inputs come from the batch's own memory
  std::unique_ptr<Event> staged;  // the copy to the device is done
  std::unique_ptr<Event> done;
  int program = 0;
  PartSeconds seconds{};
};

}  // namespace trainctl
