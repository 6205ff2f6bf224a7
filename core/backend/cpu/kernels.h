// The lowerings of all op kinds, one file per family, and the table of them.
#pragma once

#include "core/backend/cpu/lower.h"

namespace trainctl::cpu {

// dense.cpp
Lowering lower_dense(const LowerContext& context);
Lowering lower_dense_grad_input(const LowerContext& context);
Lowering lower_dense_grad_weights(const LowerContext& context);
// conv2d.cpp
Lowering lower_conv2d(const LowerContext& context);
Lowering lower_conv2d_grad_input(const LowerContext& context);
Lowering lower_conv2d_grad_weights(const LowerContext& context);
// pool2d.cpp
Lowering lower_pool2d(const LowerContext& context);
Lowering lower_pool2d_grad(const LowerContext& context);
Lowering lower_global_average_pool2d(const LowerContext& context);
Lowering lower_global_average_pool2d_grad(const LowerContext& context);
// global_max_pool2d.cpp
Lowering lower_global_max_pool2d(const LowerContext& context);
Lowering lower_global_max_pool2d_grad(const LowerContext& context);
// upsample2d.cpp
Lowering lower_upsample2d(const LowerContext& context);
Lowering lower_upsample2d_grad(const LowerContext& context);
// batch_norm.cpp
Lowering lower_batch_norm(const LowerContext& context);
Lowering lower_batch_norm_grad(const LowerContext& context);
Lowering lower_batch_norm_inference(const LowerContext& context);
Lowering lower_batch_norm_inference_grad(const LowerContext& context);
// synchronized_batch_norm.cpp
Lowering lower_batch_moments(const LowerContext& context);
Lowering lower_merge_moments(const LowerContext& context);
Lowering lower_synchronized_batch_norm(const LowerContext& context);
Lowering lower_synchronized_batch_norm_sums(const LowerContext& context);
Lowering lower_synchronized_batch_norm_grad(const LowerContext& context);
// layer_norm.cpp
Lowering lower_layer_norm(const LowerContext& context);
Lowering lower_layer_norm_grad(const LowerContext& context);
// recurrent.cpp
Lowering lower_recurrent(const LowerContext& context);
Lowering lower_recurrent_grad(const LowerContext& context);
// group_norm.cpp
Lowering lower_group_norm(const LowerContext& context);
Lowering lower_group_norm_grad(const LowerContext& context);
// padding.cpp
Lowering lower_pad2d(const LowerContext& context);
Lowering lower_crop2d(const LowerContext& context);
// normalize.cpp
Lowering lower_normalize(const LowerContext& context);
// activations.cpp
Lowering lower_activation(const LowerContext& context);
Lowering lower_activation_grad(const LowerContext& context);
Lowering lower_add(const LowerContext& context);
// combine.cpp
Lowering lower_multiply(const LowerContext& context);
Lowering lower_multiply_channels(const LowerContext& context);
Lowering lower_multiply_channels_grad(const LowerContext& context);
Lowering lower_scale_by(const LowerContext& context);
Lowering lower_extremum(const LowerContext& context);
Lowering lower_extremum_grad(const LowerContext& context);
// count.cpp
Lowering lower_count(const LowerContext& context);
// penalize.cpp
Lowering lower_penalize(const LowerContext& context);
// permute.cpp
Lowering lower_permute(const LowerContext& context);
// noise.cpp
Lowering lower_gaussian_noise(const LowerContext& context);
// prelu.cpp
Lowering lower_prelu(const LowerContext& context);
Lowering lower_prelu_grad(const LowerContext& context);
// bias.cpp
Lowering lower_add_bias(const LowerContext& context);
Lowering lower_bias_grad(const LowerContext& context);
// softmax.cpp
Lowering lower_softmax(const LowerContext& context);
Lowering lower_softmax_grad(const LowerContext& context);
// dropout.cpp
Lowering lower_dropout(const LowerContext& context);
// embedding.cpp
Lowering lower_embedding(const LowerContext& context);
Lowering lower_embedding_grad(const LowerContext& context);
// losses.cpp
Lowering lower_loss(const LowerContext& context);
Lowering lower_class_sums(const LowerContext& context);
// metrics.cpp
Lowering lower_metric(const LowerContext& context);
// optimizers.cpp
Lowering lower_optimizer(const LowerContext& context);
// update.cpp
Lowering lower_zero_gradients(const LowerContext& context);
Lowering lower_zero_gaps(const LowerContext& context);
Lowering lower_zero_input(const LowerContext& context);
Lowering lower_agree(const LowerContext& context);
Lowering lower_gradient_norm(const LowerContext& context);
Lowering lower_sum_of_squares(const LowerContext& context);
Lowering lower_chunk_squares(const LowerContext& context);
Lowering lower_sum_of_chunks(const LowerContext& context);
Lowering lower_norm_of_squares(const LowerContext& context);
Lowering lower_update_statistics(const LowerContext& context);
Lowering lower_accumulate_statistics(const LowerContext& context);

// moving_average.cpp
Lowering lower_moving_average(const LowerContext& context);
// rounded_sum.cpp
Lowering lower_round_summands(const LowerContext& context);
Lowering lower_add_summands(const LowerContext& context);
Lowering lower_widen_sums(const LowerContext& context);
// tree_sum.cpp
Lowering lower_tree_sum(const LowerContext& context);
// shaping.cpp
Lowering lower_concatenate(const LowerContext& context);
Lowering lower_split(const LowerContext& context);
Lowering lower_take_columns(const LowerContext& context);
Lowering lower_cast(const LowerContext& context);
Lowering lower_reorder(const LowerContext& context);

}  // namespace trainctl::cpu
