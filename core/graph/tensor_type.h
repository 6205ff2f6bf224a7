// The type of a tensor: its logical shape and the dtype of its elements.
#pragma once

#include "core/base/checked.h"
#include "core/tensor/dtype.h"
#include "core/tensor/shape.h"

namespace trainctl {

struct TensorType {
  Shape shape;  // logical: images NHWC, convolution kernels (height, width, in/groups, out), dense kernels (in, out)
  DType dtype = DType::float32;

  // The size in bytes. Throws OverflowError if it exceeds 64 bits.
  std::int64_t bytes() const { return checked_multiply(shape.count(), size_of(dtype)); }
  bool operator==(const TensorType&) const = default;
};

}  // namespace trainctl
