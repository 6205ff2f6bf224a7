// A rough cost of an op, for strategies that weigh ops against each other.
#pragma once

#include <vector>

#include "core/graph/op.h"

namespace trainctl {

// What moving a byte costs a rank, in FLOPs that it could do meanwhile: between memory and processor, and to another
// rank. Rough figures: with ResNet-20 on a core with AVX-512, a fit of the times of its layers to their FLOPs and bytes
// gives 7 for ops after fusion, which have fewer bytes than a graph before it.
struct ByteCosts {
  double in_memory = 0;
  double to_rank = 0;
};
inline constexpr ByteCosts byte_costs_of_processor{5, 20};
inline constexpr ByteCosts byte_costs_of_gpu{16, 100};
inline ByteCosts byte_costs(bool on_host) { return on_host ? byte_costs_of_processor : byte_costs_of_gpu; }

// The cost of an op in FLOPs, the bytes that it moves in memory included; 0 where no kernel runs. `tensors`: those of
// its graph or program.
inline double cost_of(const Op& op, const std::vector<Tensor>& tensors, const ByteCosts& byte) {
  if (op.def->trait() != OpTrait::kernel) return 0;
  double bytes = 0;
  const auto types_of = [&](const std::vector<TensorId>& ids) {
    std::vector<TensorType> types;
    for (TensorId id : ids) {
      types.push_back(tensors[static_cast<std::size_t>(id)].type);
      bytes += static_cast<double>(types.back().bytes());
    }
    return types;
  };
  const std::vector<TensorType> inputs = types_of(op.inputs), outputs = types_of(op.outputs);
  return op.def->flops(inputs, outputs) + byte.in_memory * bytes;
}

}  // namespace trainctl
