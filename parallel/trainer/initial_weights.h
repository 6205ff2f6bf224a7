// Computes the initial values of a network.
#pragma once

#include <cstdint>
#include <vector>

namespace trainctl {

struct NamedTensor;
struct ProgramSpec;

// Writes the initial values of the parameters and statistics that the rank holds, whole or as shards. Every element has
// the same value on every rank and mesh.
void initialize_weights(const ProgramSpec& spec, std::uint64_t seed, const std::vector<NamedTensor>& weights);

}  // namespace trainctl
