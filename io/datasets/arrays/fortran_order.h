// Converts arrays in Fortran order, in which the first index changes fastest, to C order.
#pragma once

#include <cstdint>
#include <string>

#include "core/tensor/shape.h"
#include "io/datasets/arrays/bytes.h"

namespace trainctl {

// Returns the elements in C order, in memory. `values` are the elements in Fortran order, shape.count() of
// `element_bytes` (1, 2, 4 or 8) each. Throws Error{data} if reading the file fails, and Error{resource} with `path` if
// the memory is too small.
Bytes in_c_order(const Bytes& values, const Shape& shape, std::int64_t element_bytes, const std::string& path);

}  // namespace trainctl
