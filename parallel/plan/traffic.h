// Computes which ranks take part in a communication and how they are distributed over nodes.
#pragma once

#include <string>
#include <vector>

#include "parallel/plan/costs.h"

namespace trainctl {

// Nodes with the same number of ranks each, which are assigned in the order of their numbers.
struct Nodes {
  int ranks_per_node = 1;

  int of(int rank) const { return rank / ranks_per_node; }
};

// Returns the largest n such that each group of n consecutive ranks, from rank 0, is on one node. `hosts`: the host of
// each rank.
int ranks_per_node(const std::vector<std::string>& hosts);

// Describes a communication of a rank for Costs. `alike` counts the groups with ranks of the same stage on this rank's
// node, which run the same communication at the same time.
Traffic traffic_of(const Communication& communication, const MeshRank& rank, const Nodes& nodes);

// Sets `shared` and `copied` for the communication of an op of the rank's program, as core/exec/collectives.cpp runs
// it. `on_host`: whether ranks communicate with the cores that they compute on.
void place_traffic(const PlacedProgram& program, const Op& op, const MeshRank& rank, bool on_host, Traffic& traffic);

// Returns the bytes that a rank sends with the algorithms that send the fewest bytes: a ring for collectives.
double bytes_sent(const Traffic& traffic);

}  // namespace trainctl
