// The list of all op kinds, from which both backends and the ONNX export build their tables.
//
// Each kind needs a function lower_KIND() in core/backend/cpu/ops and another one in core/backend/cuda/ops. Each kind
// that can be exported also needs onnx::KIND() in io/onnx/ops. The linker reports missing functions.
#pragma once

// clang-format off

// Ops of the forward pass that can be exported to ONNX.
#define TRAINCTL_EXPORTED_OPS(X) \
  X(dense) \
  X(dense_grad_input) \
  X(matmul) \
  X(conv2d) \
  X(conv2d_grad_input) \
  X(conv3d) \
  X(conv3d_grad_input) \
  X(pool2d) \
  X(global_average_pool2d) \
  X(global_max_pool2d) \
  X(upsample2d) \
  X(batch_norm_inference) \
  X(layer_norm) \
  X(recurrent) \
  X(group_norm) \
  X(pad2d) \
  X(crop2d) \
  X(normalize) \
  X(activation) \
  X(add) \
  X(elementwise) \
  X(reduce) \
  X(multiply) \
  X(gated_linear_unit) \
  X(multiply_channels) \
  X(scale_by) \
  X(extremum) \
  X(permute) \
  X(prelu) \
  X(add_bias) \
  X(softmax) \
  X(attention) \
  X(additive_attention) \
  X(embedding) \
  X(position_embedding) \
  X(rotary) \
  X(position_mask) \
  X(merge_masks) \
  X(mask_positions) \
  X(masked_mean) \
  X(concatenate) \
  X(flip) \
  X(cumsum) \
  X(arange) \
  X(random_numbers) \
  X(cast)

// Ops of the forward pass that can be exported to ONNX and have no kernels because they only alias memory.
#define TRAINCTL_EXPORTED_VIEWS(X) \
  X(reshape)

// Ops of the backward pass, other ops of training, and the op of generation.
#define TRAINCTL_TRAINING_OPS(X) \
  X(dense_grad_weights) \
  X(conv2d_grad_weights) \
  X(conv3d_grad_weights) \
  X(pool2d_grad) \
  X(global_average_pool2d_grad) \
  X(global_max_pool2d_grad) \
  X(upsample2d_grad) \
  X(batch_norm) \
  X(batch_norm_grad) \
  X(batch_norm_inference_grad) \
  X(batch_moments) \
  X(merge_moments) \
  X(synchronized_batch_norm) \
  X(synchronized_batch_norm_sums) \
  X(synchronized_batch_norm_grad) \
  X(layer_norm_grad) \
  X(recurrent_grad) \
  X(group_norm_grad) \
  X(activation_grad) \
  X(multiply_channels_grad) \
  X(gated_linear_unit_grad) \
  X(extremum_grad) \
  X(count) \
  X(penalize) \
  X(gaussian_noise) \
  X(prelu_grad) \
  X(bias_grad) \
  X(softmax_grad) \
  X(attention_grad) \
  X(additive_attention_grad) \
  X(dropout) \
  X(embedding_grad) \
  X(position_embedding_grad) \
  X(masked_mean_grad) \
  X(mask_weights) \
  X(loss) \
  X(class_sums) \
  X(linear_cross_entropy) \
  X(metric) \
  X(token_bytes) \
  X(one_hot) \
  X(optimizer) \
  X(zero_gradients) \
  X(zero_gaps) \
  X(centralize_gradients) \
  X(clip_gradients) \
  X(zero_input) \
  X(agree) \
  X(gradient_norm) \
  X(sum_of_squares) \
  X(chunk_squares) \
  X(sum_of_chunks) \
  X(norm_of_squares) \
  X(update_statistics) \
  X(moving_average) \
  X(spectral_norm) \
  X(restore) \
  X(accumulate_statistics) \
  X(round_summands) \
  X(add_summands) \
  X(widen_sums) \
  X(tree_sum) \
  X(split) \
  X(take_columns) \
  X(take_samples) \
  X(write_cache) \
  X(reorder)

// Ops that only the lowering to CUDA creates, by fusing or replacing other ops.
#define TRAINCTL_CUDA_OPS(X) \
  X(batch_norm_pool) \
  X(batch_norm_pool_grad) \
  X(scale)

// clang-format on

#define TRAINCTL_KERNEL_OPS(X) TRAINCTL_EXPORTED_OPS(X) TRAINCTL_TRAINING_OPS(X)
