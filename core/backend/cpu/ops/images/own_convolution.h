// The kernels of this project that compute a convolution or its gradient with respect to its input, beside oneDNN's
// implementations.
#pragma once

#include <optional>

#include "core/backend/cpu/ops/images/own_kernel.h"

namespace trainctl::cpu {

// Returns the kernel for the context's op; nullopt if there is none for its shapes and dtype on this processor. The
// context must outlive the result.
std::optional<OwnKernel> own_convolution(const LowerContext& context);

}  // namespace trainctl::cpu
