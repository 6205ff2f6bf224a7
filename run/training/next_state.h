// Names the state from which a run goes on when its ranks start again.
#pragma once

#include <string>

namespace trainctl {

struct RestartingRun;

// Returns the state that open_run_files() will load, as far as this host can tell without reading tensors: "checkpoint
// PATH", "the copy of step 50 in the memory of n1", or that it is the state at the start. A checkpoint with a file of
// the wrong length is passed over. Returns "" if the directory cannot be read.
std::string next_state_of(const RestartingRun& run);

}  // namespace trainctl
