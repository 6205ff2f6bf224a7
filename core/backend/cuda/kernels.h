// The lowerings of all op kinds on CUDA, one file per family, and the table of them.
#pragma once

#include "core/backend/cuda/lower.h"

namespace trainctl::cuda {

// dense.cpp
Lowering lower_dense(const LowerContext& context);
Lowering lower_dense_grad_input(const LowerContext& context);
Lowering lower_dense_grad_weights(const LowerContext& context);
// conv2d.cpp
Lowering lower_conv2d(const LowerContext& context);
Lowering lower_conv2d_grad_input(const LowerContext& context);
Lowering lower_conv2d_grad_weights(const LowerContext& context);
// activations.cu
Lowering lower_activation(const LowerContext& context);
Lowering lower_activation_grad(const LowerContext& context);
Lowering lower_add(const LowerContext& context);
// scale.cu
Lowering lower_scale(const LowerContext& context);
// optimizers.cu
Lowering lower_sgd(const LowerContext& context);
Lowering lower_adam(const LowerContext& context);
// update.cu
Lowering lower_zero_gradients(const LowerContext& context);
Lowering lower_agree(const LowerContext& context);
Lowering lower_gradient_norm(const LowerContext& context);
Lowering lower_update_statistics(const LowerContext& context);
Lowering lower_accumulate_statistics(const LowerContext& context);
// shaping.cu
Lowering lower_concatenate(const LowerContext& context);
Lowering lower_split(const LowerContext& context);
Lowering lower_cast(const LowerContext& context);
Lowering lower_reorder(const LowerContext& context);

}  // namespace trainctl::cuda
