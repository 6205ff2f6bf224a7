// A rough cost of an op, for strategies that weigh ops against each other.
#pragma once

#include <vector>

#include "core/graph/op.h"

namespace trainctl {

// What moving a byte between a device's memory and its processor costs, in FLOPs: a rough figure between those of CPUs
// and GPUs.
inline constexpr double rough_flops_per_byte = 16;

// The cost of an op in FLOPs, the bytes that it moves included; 0 where no kernel runs. `tensors`: those of its graph
// or program.
inline double cost_of(const Op& op, const std::vector<Tensor>& tensors, double flops_per_byte = rough_flops_per_byte) {
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
  return op.def->flops(inputs, outputs) + flops_per_byte * bytes;
}

}  // namespace trainctl
