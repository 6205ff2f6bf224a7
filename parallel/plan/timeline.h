// Writes the simulated step as a timeline for Perfetto.
#pragma once

#include <string>

namespace trainctl {

struct Prediction;

// Returns a trace with one process for each stage, which has a thread for computation and one for the communication
// along each axis of the mesh. The prediction must have been made with a timeline.
std::string timeline_of(const Prediction& prediction);

}  // namespace trainctl
