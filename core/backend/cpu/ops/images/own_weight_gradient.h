// The kernels of this project that compute the gradient of a convolution with respect to its kernel, beside oneDNN's
// implementations.
#pragma once

#include <optional>

#include "core/backend/cpu/ops/images/own_kernel.h"

namespace trainctl::cpu {

// Returns the kernel for the context's op; nullopt if there is none for its shapes and dtype on this processor. The
// context must outlive the result.
std::optional<OwnKernel> own_weight_gradient(const LowerContext& context);

}  // namespace trainctl::cpu
