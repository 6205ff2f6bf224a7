// The physical layout of a tensor in memory: its dtype and a format that is private to the backend.
#pragma once

#include <cstdint>
#include <string>

#include "core/tensor/dtype.h"

namespace trainctl {

// Two layouts are equal if their dtypes and formats are equal.
struct Layout {
  DType dtype = DType::float32;
  std::string format;  // "": the dense row-major layout of the logical shape; otherwise a name that the backend defines
  std::int64_t bytes = 0;  // size of the tensor, including padding

  bool operator==(const Layout& other) const { return dtype == other.dtype && format == other.format; }
};

}  // namespace trainctl
