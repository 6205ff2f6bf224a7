// Fusion: fewer, larger ops that compute the same.
#pragma once

#include "core/graph/graph.h"

namespace trainctl {

// On the forward graph, before differentiation, so that each fused op brings its own consistent gradient:
// dense and conv2d take the activation behind them; batch normalisation takes an add behind it (as residual) and a
// relu. Only where nothing else reads what lies between, and only functions whose gradient needs the output alone.
Graph fuse(Graph graph);

// On the backward ops: an activation's gradient behind dense_grad_input becomes part of it.
Backward fuse(Backward backward);

}  // namespace trainctl
