// The kernels of this project that compute a convolution or its gradient with respect to its input, beside oneDNN's
// implementations.
#pragma once

#include <vector>

#include "core/backend/cpu/ops/images/own_kernel.h"

namespace trainctl::cpu {

// Returns the kernels for the op of the context, which must outlive them; none if there are none for its shapes and
// dtypes on this processor.
std::vector<OwnKernel> own_convolutions(const LowerContext& context);

}  // namespace trainctl::cpu
