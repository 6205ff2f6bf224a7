// The tables with which `check` shows the mesh: the layers, and the shards of layers, of each rank.
#pragma once

#include <string>
#include <vector>

namespace trainctl {

struct Checked;
struct CheckedPosition;

// Returns the ranks at this position in all replicas.
std::vector<int> ranks_of(const CheckedPosition& position);

// Returns a table of the positions with their ranks, layers, parameters and memory and, if ranks share layers, a table
// of the parameters that are split. Empty for one rank.
std::string mesh_text(const Checked& checked);

}  // namespace trainctl
