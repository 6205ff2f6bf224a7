// Assigns layers to the stages of a pipeline: as the config specifies, or balanced by cost.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/graph/graph.h"
#include "core/spec/reader.h"
#include "parallel/strategies/options.h"

namespace trainctl {

struct ByteCosts;

// The stage of each layer by its path, for every layer that has ops. A stage is a run of consecutive layers.
using Stages = std::map<std::string, int>;

// Returns the paths of the layers of a forward graph that have ops, in the order in which they end: a block comes after
// the layers in it.
std::vector<std::string> layers_of(const Graph& graph);

// Whether an op prepares an input of the model (casts or normalizes it) and does not belong to a layer: every stage
// that reads the input runs the op itself.
bool prepares_input(const Graph& graph, const Op& op);

// Cuts a whole forward training graph into `stages` stages: by strategy.place if it is set, otherwise such that the
// cost of the costliest stage, including sending, is minimal. Reports problems to the reader with their lines: a
// pattern that matches no layer, a layer in two stages or in no stage, stages out of order, more stages than layers,
// uses of a batch normalization in several stages. Balanced stages are not cut between these uses.
Stages assign_stages(const Graph& graph, const StrategyOptions& options, int stages, const ByteCosts& bytes,
                     Reader& reader);

}  // namespace trainctl
