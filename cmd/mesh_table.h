// Which layers, and which part of them, lie on which rank: the mesh as `check` shows it.
#pragma once

#include <string>
#include <vector>

namespace trainctl {

struct Checked;
struct CheckedPosition;

// The ranks of all replicas that hold such a part.
std::vector<int> ranks_of(const CheckedPosition& part);

// A table of the parts with their ranks, layers, parameters and memory; where ranks share layers, another one of the
// parameters that are split. Empty for one rank.
std::string mesh_text(const Checked& checked);

}  // namespace trainctl
