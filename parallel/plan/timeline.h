// Writes the simulated step as a timeline for Perfetto.
#pragma once

#include <string>

namespace trainctl {

struct Prediction;

// Returns a trace with one process for each stage. A process has a thread for computation and a thread for the
// communication along each axis of the mesh. The prediction must have been made with a timeline.
std::string timeline_of(const Prediction& prediction);

}  // namespace trainctl
