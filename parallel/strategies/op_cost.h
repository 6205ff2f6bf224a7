// Estimates the cost of an op, for strategies that compare ops.
#pragma once

#include <vector>

#include "core/graph/op.h"

namespace trainctl {

// The cost of moving a byte between memory and processor, and to another rank: the FLOPs that a rank could compute in
// the same time. The values are rough. For ResNet-20 on a core with AVX-512, a fit of the layers' times to their FLOPs
// and bytes returns 7 for ops after fusion, which move fewer bytes than ops before fusion.
struct ByteCosts {
  double in_memory = 0;
  double to_rank = 0;
};
inline constexpr ByteCosts byte_costs_of_processor{5, 20};
inline constexpr ByteCosts byte_costs_of_gpu{16, 100};
inline ByteCosts byte_costs(bool on_host) { return on_host ? byte_costs_of_processor : byte_costs_of_gpu; }

// Returns the cost of an op in FLOPs, including the cost of the bytes that it moves in memory; 0 if no kernel runs.
// `tensors`: the tensors of its graph or program.
inline double cost_of(const Op& op, const std::vector<Tensor>& tensors, const ByteCosts& of_byte) {
  if (op.def->trait() != OpTrait::kernel) return 0;
  const std::vector<TensorType> inputs = types_of(op.inputs, tensors), outputs = types_of(op.outputs, tensors);
  double bytes = 0;
  for (const TensorType& type : inputs) bytes += static_cast<double>(type.bytes());
  for (const TensorType& type : outputs) bytes += static_cast<double>(type.bytes());
  return op.def->flops(inputs, outputs) + of_byte.in_memory * bytes;
}

}  // namespace trainctl
