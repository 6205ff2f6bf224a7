// Loads the initial weights of a network from a file.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/exec/interfaces/snapshot.h"

namespace trainctl {

struct Graph;
struct WeightsOptions;

// All weights of a network in memory, as a snapshot.
struct LoadedWeights {
  std::string path;
  Snapshot snapshot;  // only its weights are set
  std::vector<std::unique_ptr<float[]>> memory;
};

// What weights are read for, which decides the advice in errors: for a config, whose keys skip tensors and rename
// layers, or for `trainctl import`, which compares a file with the network that the file itself describes.
enum class WeightsUse { config, import };

// Compares the file with the network and logs which tensor is loaded, missing or skipped; reads only headers. `graph`
// is the evaluation graph of the whole network. Throws ConfigError with all mismatches, and Error{data} if the file
// cannot be read.
void check_weights(const WeightsOptions& options, const Graph& graph, WeightsUse use = WeightsUse::config);

// Checks the file like check_weights(), and reads the values. A tensor that is not loaded gets the values of the tensor
// that `followed` names for it or, if it names none (""), initial values from the seed.
LoadedWeights load_weights(
    const WeightsOptions& options, const Graph& graph, std::uint64_t seed,
    const std::function<std::string(const std::string&)>& followed = [](const std::string&) { return ""; },
    WeightsUse use = WeightsUse::config);

}  // namespace trainctl
