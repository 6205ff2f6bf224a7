// Tensors of graphs and programs: name, logical shape, element type, role, and placement on the mesh.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/graph/placement.h"
#include "core/graph/tensor_type.h"
#include "core/tensor/extent.h"

namespace trainctl {

// The number of a tensor: its index among the tensors of its graph or program.
using TensorId = std::int32_t;
inline constexpr TensorId no_tensor = -1;

// Returns the number of a tensor, a rank or anything else as the index of an element of a vector.
inline std::size_t index(std::int64_t number) { return static_cast<std::size_t>(number); }

// The purpose of a tensor, which decides its memory region.
enum class Role {
  parameter,   // float32 master weights in logical layout, in the flat region of the parameters
  statistic,   // running statistics that the update maintains (moving_mean, moving_variance), in a flat region
  gradient,    // float32, at the same offsets as the parameters
  reduced,     // float32 sums over samples, stored after the gradients and reduced with the last bucket: sums for
               // statistics, losses and metrics, the number of samples, the flags of agree ops
  state,       // optimizer state: each kind has a region with the offsets of the parameters
  copy,        // compute copy of a parameter in the dtype and layout of a kernel, written by the update
  input,       // filled from the batch: images, labels, sample weights, sample numbers
  activation,  // all other results of forward and backward ops; in a slot
  scalar,      // learning rate, step, ...: written by the host before every step
  cache,       // stays from one run to the next: keys and values of earlier positions, kernels before a step
};

// The shard of a parameter or running statistic that a rank holds.
struct TensorShard {
  Shape whole;          // shape of the whole tensor
  TensorExtent extent;  // elements of the shard, as many as Tensor::type has
};

// A penalty l1 * sum |w| + l2 * sum w^2 on the values w of a parameter, which is added to the mean loss.
struct Penalty {
  float l1 = 0, l2 = 0;

  bool any() const { return l1 != 0 || l2 != 0; }
};

struct Tensor {
  std::string name;  // "conv1/kernel", "conv1/output", "conv1/output/gradient"
  TensorType type;
  Role role = Role::activation;
  TensorId alias_of = no_tensor;      // the tensor whose memory this tensor shares, as a whole (reshape) or in part
  std::int64_t alias_offset = 0;      // offset of this tensor in the memory of `alias_of`, in elements
  std::vector<TensorId> members;      // for a bucket: the tensors in the bucket, one after the other
  std::optional<TensorShard> shard;   // the shard that this tensor is; empty: the tensor is whole
  std::vector<Placement> placements;  // one for each mesh axis; empty: replicated on all axes
  SourceLocation location;            // location of the layer in the config
};

// Returns the types of the tensors `ids`, which are numbers of elements of `tensors`.
inline std::vector<TensorType> types_of(const std::vector<TensorId>& ids, const std::vector<Tensor>& tensors) {
  std::vector<TensorType> types;
  types.reserve(ids.size());
  for (TensorId id : ids) types.push_back(tensors[index(id)].type);
  return types;
}

}  // namespace trainctl
