// Adds to a plan the averages of replicas that train independently for some steps (strategy.sync_every;
// parallel/trainer/hooks/local_steps.h).
#pragma once

#include <vector>

namespace trainctl {

class Costs;
struct Nodes;
struct SimulatedStep;
struct StageRank;

// Adds 1 / `every` of the time and bytes of an average to a simulated step, and returns the seconds of an average. The
// result is the time of the slowest stage, since the other stages wait for it. Copies between the device's memory and
// the host's, where averages are computed, are not counted. `stages`: as in simulate_step().
double add_average(SimulatedStep& step, int every, const std::vector<StageRank>& stages, const Nodes& nodes,
                   const Costs& costs);

}  // namespace trainctl
