// The physical layout of a tensor: its dtype and a format that only the backend understands.
#pragma once

#include <cstdint>
#include <string>

#include "core/tensor/dtype.h"

namespace trainctl {

// Two layouts are the same when dtype and format are.
struct Layout {
  DType dtype = DType::float32;
  std::string format;      // "" is the logical, dense row-major layout; else a name of the backend's
  std::int64_t bytes = 0;  // of the tensor, with the backend's padding

  bool operator==(const Layout& other) const { return dtype == other.dtype && format == other.format; }
};

}  // namespace trainctl
