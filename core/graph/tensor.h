// Tensors of graphs and programs: name, logical shape, element type, role, and placement on the mesh.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/graph/placement.h"
#include "core/graph/tensor_type.h"

namespace trainctl {

using TensorId = std::int32_t;
inline constexpr TensorId no_tensor = -1;

// What a tensor is for; decides the region that it lies in.
enum class Role {
  parameter,  // float32 master weights, flat region, logical layout
  statistic,  // running statistics that the update maintains (moving_mean, moving_variance), flat region
  gradient,   // float32, same offsets as the parameters
  reduced,    // float32 sums over samples behind the gradients, reduced with the last bucket: statistics' sums, losses,
              // metrics, the sample count, the agree flags
  state,      // optimizer state: each kind a flat region with the parameters' offsets
  copy,       // compute copy of a parameter in the dtype and layout that a kernel wants, written by the update
  input,      // filled from the batch: images, labels, sample weights, sample numbers
  activation,  // everything between, forward and backward; lives in the slot
  scalar,      // learning rate, step, ...: written by the host once a step
};

struct Tensor {
  std::string name;  // "conv1/kernel", "conv1/output", "conv1/output/gradient"
  TensorType type;
  Role role = Role::activation;
  TensorId alias_of = no_tensor;      // this tensor is that one's memory under another shape (flatten)
  std::vector<TensorId> members;      // these lie side by side in this tensor's memory, a bucket of a flat region
  std::vector<Placement> placements;  // one for each mesh axis; empty: replicated on all
  Place place;                        // the config line of the layer
};

}  // namespace trainctl
