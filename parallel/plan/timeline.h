// The simulated step as a timeline for Perfetto.
#pragma once

#include <string>

namespace trainctl {

struct Prediction;

// One process for each kind of rank, which are the stages, with a thread for computation and one for the communication
// along each axis of the mesh. The prediction was made with a timeline.
std::string timeline_of(const Prediction& prediction);

}  // namespace trainctl
