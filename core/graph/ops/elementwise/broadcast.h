// Broadcast inputs as steps in memory, for the kernels of all devices.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/graph/tensor_type.h"

namespace trainctl {

// A shape with few dimensions, whose elements are in row-major order, and the inputs that are broadcast to it: the
// element at (i0, i1, ...) of the shape is element i0 * strides[0] + i1 * strides[1] + ... of an input. A stride is 0
// where the input is repeated; the last stride of an input is 0 or 1.
struct BroadcastView {
  std::vector<std::int64_t> sizes;                 // at least one
  std::vector<std::vector<std::int64_t>> strides;  // of each input

  std::int64_t count() const;
  // Whether all inputs have the elements of the shape, one after the other.
  bool is_flat() const;
};

// Dimensions are merged where all inputs allow it, and dimensions of size 1 are left out. The inputs must be
// broadcastable to the shape as in NumPy.
BroadcastView broadcast_view(std::span<const TensorType> inputs, const Shape& to);

}  // namespace trainctl
