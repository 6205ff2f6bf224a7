// Who takes part in a communication, and on how many nodes they lie.
#pragma once

#include <string>
#include <vector>

#include "parallel/plan/costs.h"

namespace trainctl {

// Ranks on nodes of equal size, in the order of their numbers: neighbours lie on one node.
struct Nodes {
  int ranks_per_node = 1;

  int of(int rank) const { return rank / ranks_per_node; }
};

// The most neighbours that lie on one node each, wherever ranks of a mesh are divided into groups of so many. `hosts`:
// of each rank.
int ranks_per_node(const std::vector<std::string>& hosts);

// A communication of a rank, as costs see it. `alike` counts the groups whose ranks on this rank's node are of the same
// stage, and so do the same at the same time.
Traffic traffic_of(const Communication& communication, const MeshRank& rank, const Nodes& nodes);

// Sets where the communication that an op of the rank's program stands for works, as core/exec/collectives.cpp calls
// it. `on_host`: ranks compute on the cores that they communicate with.
void place_traffic(const PlacedProgram& program, const Op& op, const MeshRank& rank, bool on_host, Traffic& traffic);

// The bytes that a rank sends for it with the algorithms that send least: of a ring for collectives.
double bytes_sent(const Traffic& traffic);

}  // namespace trainctl
