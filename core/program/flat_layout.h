// Where parameters, gradients, running statistics and sums lie in their flat regions.
#pragma once

#include <functional>

#include "core/graph/passes/differentiate.h"
#include "core/program/program.h"

namespace trainctl {

// The contents of a training graph's flat regions in their order, without offsets: trainable parameters in the order in
// which the backward ops finish their gradients, those last that several stages hold, then frozen parameters; running
// statistics in the graph's order; the tensors `reduced`, which lie behind the gradients. `decays` says whether weight
// decay applies to a parameter.
FlatLayout order_flat(const Graph& graph, const Backward& backward, std::vector<TensorId> reduced,
                      const std::function<bool(const GraphParameter&)>& decays);

// Adds the states that the optimizer keeps of the layout's trainable parameters. `tensors`: the program's.
void keep_states(FlatLayout& layout, const OptimizerRule& rule, const std::vector<Tensor>& tensors);

// Assigns the offset of every entry in the layout; parameters begin at multiples of Sharding::grain elements.
void assign_offsets(FlatLayout& layout, const std::vector<Tensor>& tensors);

// The layout of a training program with another program's tensors in place of its own, matched by name. Sums and
// gradients that the other program lacks are left out.
FlatLayout same_layout(const Program& training, const std::vector<Tensor>& tensors);

// The ranges of the trainable parameters that the optimizer updates alike; with `by_parameter` one range for each
// parameter.
std::vector<UpdateRange> update_ranges(const FlatLayout& layout, bool by_parameter = false);

// The parts of ranges that lie in [first, end), with offsets from `first`.
std::vector<UpdateRange> ranges_within(const std::vector<UpdateRange>& ranges, std::int64_t first, std::int64_t end);

}  // namespace trainctl
