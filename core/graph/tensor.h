// Tensors of graphs and programs: name, logical shape, element type, role, and placement on the mesh.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/graph/placement.h"
#include "core/graph/tensor_type.h"
#include "core/tensor/extent.h"

namespace trainctl {

using TensorId = std::int32_t;
inline constexpr TensorId no_tensor = -1;

// The purpose of a tensor, which decides the region that it lies in.
enum class Role {
  parameter,  // float32 master weights in logical layout, in a flat region
  statistic,  // running statistics that the update maintains (moving_mean, moving_variance), flat region
  gradient,   // float32, at the same offsets as the parameters
  reduced,    // float32 sums over samples behind the gradients, reduced with the last bucket: statistics' sums, losses,
              // metrics, the sample count, the agree flags
  state,      // optimizer state: for each kind a region with the parameters' offsets
  copy,       // compute copy of a parameter in the dtype and layout that a kernel wants, written by the update
  input,      // filled from the batch: images, labels, sample weights, sample numbers
  activation,  // all other results of ops, forward and backward; in the slot
  scalar,      // learning rate, step, ...: written by the host once a step
};

// The part of a parameter or running statistic that a rank holds.
struct TensorShard {
  Shape whole;          // shape of the whole tensor
  TensorExtent extent;  // as large as the shape of the Tensor
};

// A penalty l1 * sum |w| + l2 * sum w^2 on a parameter's values w, beside the mean loss.
struct Penalty {
  float l1 = 0, l2 = 0;

  bool any() const { return l1 != 0 || l2 != 0; }
};

struct Tensor {
  std::string name;  // "conv1/kernel", "conv1/output", "conv1/output/gradient"
  TensorType type;
  Role role = Role::activation;
  TensorId alias_of = no_tensor;      // the tensor whose memory this one is, under another shape (flatten), or lies in
  std::int64_t alias_offset = 0;      // where it begins in that memory, in elements
  std::vector<TensorId> members;      // of a bucket: the tensors that lie side by side in it
  std::optional<TensorShard> part;    // nothing: the tensor is whole
  std::vector<Placement> placements;  // one for each mesh axis; empty: replicated on all
  SourceLocation location;            // config line of the layer
};

}  // namespace trainctl
