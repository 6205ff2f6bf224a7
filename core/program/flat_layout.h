// Where parameters, gradients, running statistics and sums lie in their flat regions.
#pragma once

#include <functional>

#include "core/graph/graph.h"
#include "core/graph/ops/optimizers.h"
#include "core/program/program.h"

namespace trainctl {

// What the flat regions of a training graph hold, in order and without offsets: trainable parameters in the order in
// which the backward ops finish their gradients, frozen ones behind them, running statistics in the graph's order, and
// the tensors `reduced` behind the gradients. `decays` says whether weight decay applies to a parameter.
FlatLayout order_flat(const Graph& graph, const Backward& backward, std::vector<TensorId> reduced,
                      const std::function<bool(const GraphParameter&)>& decays, std::vector<std::string> states);

// Gives everything in the layout its offset, parameters at multiples of flat_alignment.
void assign_offsets(FlatLayout& layout, const std::vector<Tensor>& tensors);

// The layout of a training program for another program's tensors, matched by name; sums and gradients that it lacks are
// left out.
FlatLayout same_layout(const Program& training, const std::vector<Tensor>& tensors);

// The trainable part, as runs that are updated alike, or, `by_parameter`, a range for each parameter.
std::vector<UpdateRange> update_ranges(const FlatLayout& layout, bool by_parameter = false);

}  // namespace trainctl
