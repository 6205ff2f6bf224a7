// The peak FLOP/s of GPUs from their data sheets, with which the summary of a training run compares its speed.
#pragma once

#include <string_view>

#include "core/tensor/dtype.h"

namespace trainctl {

// Returns the peak FLOP/s of dense matrix products with operands of the dtype and float32 accumulators; with `tf32`,
// float32 products run on tensor cores. `model` is the GPU's name in CUDA, or a fingerprint that begins with this name
// and a comma. Returns 0 if the model is unknown or does not compute in the dtype.
double datasheet_flops(std::string_view model, DType dtype, bool tf32);

}  // namespace trainctl
