// Averages of replicas that take steps alone (strategy.sync_every; parallel/trainer/hooks/local_steps.h), as a plan
// counts them.
#pragma once

#include <vector>

namespace trainctl {

class Costs;
struct Nodes;
struct SimulatedStep;
struct StageRank;

// Adds to a simulated step its part of an average after so many steps, and returns the seconds of an average: that of
// the stage which has most to average, for which the others wait. Copies between a device's memory and the host's,
// where averages are taken, are not counted. `stages`: as simulate_step() takes them.
double add_average(SimulatedStep& step, int every, const std::vector<StageRank>& stages, const Nodes& nodes,
                   const Costs& costs);

}  // namespace trainctl
