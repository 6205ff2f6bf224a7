// Makes a graph that computes a few new positions of a sequence out of the keys and values of all earlier positions.
#pragma once

#include <cstdint>
#include <string>

#include "core/graph/graph.h"

namespace trainctl {

// The result of cache_positions().
struct CachedGraph {
  Graph graph;
  // Why the graph cannot compute positions one after another, such as "the layer 'lstm' (recurrent) reads all earlier
  // positions"; empty if it can.
  std::string problem;
  // Why the output at a position may depend on later positions, so that the network cannot continue a text; empty if it
  // does not.
  std::string not_causal;
};

// Rewrites the forward graph of a causal network, whose input number `tokens` is [N, T]: the T positions of sample n
// are now starts[n], starts[n] + 1, ..., where starts int32 [N] is a new input after all others. Every causal attention
// writes its keys and values into caches of `positions` rows for each sample (tensors of Role::cache, named
// LAYER/keys and LAYER/values) and reads all rows up to its own position from there. Learned and rotary positions begin
// at starts. All positions of a text belong to one document: inputs of document numbers are no longer read. The graph
// must not be fused, and is not for training.
CachedGraph cache_positions(Graph graph, std::size_t tokens, std::int64_t positions);

}  // namespace trainctl
