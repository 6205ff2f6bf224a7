// The weights that a network begins with, from a file.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/exec/interfaces/snapshot.h"

namespace trainctl {

struct Graph;
struct WeightsOptions;

// All weights of a network in memory, as if a checkpoint had held them.
struct LoadedWeights {
  std::string path;
  Snapshot snapshot;  // its weights alone
  std::vector<std::unique_ptr<float[]>> memory;
};

// Compares the file with the network and logs what becomes of each tensor; reads headers alone. `graph`: the whole
// network's, of evaluation. Throws ConfigError with all that does not match, Error{data} where the file cannot be read.
void check_weights(const WeightsOptions& options, const Graph& graph);

// Likewise, and reads the values. Tensors that the file does not give have their initial values by the seed.
LoadedWeights load_weights(const WeightsOptions& options, const Graph& graph, std::uint64_t seed);

}  // namespace trainctl
