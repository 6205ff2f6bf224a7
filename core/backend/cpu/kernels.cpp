// The table of kernels: op kind -> lowering.
#include "core/backend/cpu/kernels.h"

#include <algorithm>
#include <array>

namespace trainctl::cpu {
namespace {

struct Entry {
  std::string_view kind;
  LowerFunction lower;
};

constexpr std::array table{
    Entry{"dense", lower_dense},
    Entry{"dense_grad_input", lower_dense_grad_input},
    Entry{"dense_grad_weights", lower_dense_grad_weights},
    Entry{"conv2d", lower_conv2d},
    Entry{"conv2d_grad_input", lower_conv2d_grad_input},
    Entry{"conv2d_grad_weights", lower_conv2d_grad_weights},
    Entry{"pool2d", lower_pool2d},
    Entry{"pool2d_grad", lower_pool2d_grad},
    Entry{"global_average_pool2d", lower_global_average_pool2d},
    Entry{"global_average_pool2d_grad", lower_global_average_pool2d_grad},
    Entry{"global_max_pool2d", lower_global_max_pool2d},
    Entry{"global_max_pool2d_grad", lower_global_max_pool2d_grad},
    Entry{"upsample2d", lower_upsample2d},
    Entry{"upsample2d_grad", lower_upsample2d_grad},
    Entry{"batch_norm", lower_batch_norm},
    Entry{"batch_norm_grad", lower_batch_norm_grad},
    Entry{"batch_norm_inference", lower_batch_norm_inference},
    Entry{"batch_norm_inference_grad", lower_batch_norm_inference_grad},
    Entry{"batch_moments", lower_batch_moments},
    Entry{"merge_moments", lower_merge_moments},
    Entry{"synchronized_batch_norm", lower_synchronized_batch_norm},
    Entry{"synchronized_batch_norm_sums", lower_synchronized_batch_norm_sums},
    Entry{"synchronized_batch_norm_grad", lower_synchronized_batch_norm_grad},
    Entry{"layer_norm", lower_layer_norm},
    Entry{"layer_norm_grad", lower_layer_norm_grad},
    Entry{"recurrent", lower_recurrent},
    Entry{"recurrent_grad", lower_recurrent_grad},
    Entry{"group_norm", lower_group_norm},
    Entry{"group_norm_grad", lower_group_norm_grad},
    Entry{"pad2d", lower_pad2d},
    Entry{"crop2d", lower_crop2d},
    Entry{"normalize", lower_normalize},
    Entry{"activation", lower_activation},
    Entry{"activation_grad", lower_activation_grad},
    Entry{"add", lower_add},
    Entry{"multiply", lower_multiply},
    Entry{"multiply_channels", lower_multiply_channels},
    Entry{"multiply_channels_grad", lower_multiply_channels_grad},
    Entry{"scale_by", lower_scale_by},
    Entry{"extremum", lower_extremum},
    Entry{"extremum_grad", lower_extremum_grad},
    Entry{"count", lower_count},
    Entry{"penalize", lower_penalize},
    Entry{"permute", lower_permute},
    Entry{"gaussian_noise", lower_gaussian_noise},
    Entry{"prelu", lower_prelu},
    Entry{"prelu_grad", lower_prelu_grad},
    Entry{"add_bias", lower_add_bias},
    Entry{"bias_grad", lower_bias_grad},
    Entry{"softmax", lower_softmax},
    Entry{"softmax_grad", lower_softmax_grad},
    Entry{"dropout", lower_dropout},
    Entry{"embedding", lower_embedding},
    Entry{"embedding_grad", lower_embedding_grad},
    Entry{"loss", lower_loss},
    Entry{"class_sums", lower_class_sums},
    Entry{"metric", lower_metric},
    Entry{"optimizer", lower_optimizer},
    Entry{"zero_gradients", lower_zero_gradients},
    Entry{"zero_gaps", lower_zero_gaps},
    Entry{"zero_input", lower_zero_input},
    Entry{"agree", lower_agree},
    Entry{"gradient_norm", lower_gradient_norm},
    Entry{"sum_of_squares", lower_sum_of_squares},
    Entry{"chunk_squares", lower_chunk_squares},
    Entry{"sum_of_chunks", lower_sum_of_chunks},
    Entry{"norm_of_squares", lower_norm_of_squares},
    Entry{"update_statistics", lower_update_statistics},
    Entry{"moving_average", lower_moving_average},
    Entry{"accumulate_statistics", lower_accumulate_statistics},
    Entry{"round_summands", lower_round_summands},
    Entry{"add_summands", lower_add_summands},
    Entry{"widen_sums", lower_widen_sums},
    Entry{"tree_sum", lower_tree_sum},
    Entry{"concatenate", lower_concatenate},
    Entry{"split", lower_split},
    Entry{"take_columns", lower_take_columns},
    Entry{"cast", lower_cast},
    Entry{"reorder", lower_reorder},
};

}  // namespace

LowerFunction find_lowering(std::string_view kind) {
  const auto* entry = std::find_if(table.begin(), table.end(), [&](const Entry& e) { return e.kind == kind; });
  return entry == table.end() ? nullptr : entry->lower;
}

}  // namespace trainctl::cpu
