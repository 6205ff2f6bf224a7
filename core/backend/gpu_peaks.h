// The peaks of GPUs by their data sheets, with which the summary of a training run compares its speed.
#pragma once

#include <string_view>

#include "core/tensor/dtype.h"

namespace trainctl {

// FLOP/s of dense matrix products with sums in float32, on operands of the dtype; `tf32`: float32 on tensor cores.
// `model` is the name that CUDA gives, or a fingerprint that begins with it and a comma. 0 where the model is not
// known, or does not compute in the dtype.
double datasheet_flops(std::string_view model, DType dtype, bool tf32);

}  // namespace trainctl
