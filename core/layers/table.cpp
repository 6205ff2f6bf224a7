// The table of layers.
#include "core/layers/table.h"

#include "core/layers/attention/multi_head_attention.h"
#include "core/layers/blocks.h"
#include "core/layers/convolutional/convolution.h"
#include "core/layers/dense.h"
#include "core/layers/merging/merging.h"
#include "core/layers/normalization/batch_normalization.h"
#include "core/layers/normalization/layer_normalization.h"
#include "core/layers/pooling/pooling2d.h"
#include "core/layers/regularization/dropout.h"
#include "core/layers/simple.h"

namespace trainctl {

const ChoiceTable& layer_choices() {
  static const ChoiceTable table{"layer",
                                 {
                                     DenseOptions::keys(),
                                     einsum_dense(),
                                     embedding(),
                                     category_encoding(),
                                     masking(),
                                     segment_embedding(),
                                     position_embedding(),
                                     token_and_position_embedding(),
                                     class_token(),
                                     take_position(),
                                     reversible_embedding(),
                                     rotary_embedding(),
                                     lstm(),
                                     gru(),
                                     simple_rnn(),
                                     conv_lstm1d(),
                                     conv_lstm2d(),
                                     conv_lstm3d(),
                                     bidirectional(),
                                     time_distributed(),
                                     repeat_vector(),
                                     MultiHeadAttentionOptions::keys(),
                                     group_query_attention(),
                                     attention(),
                                     additive_attention(),
                                     transformer_encoder(),
                                     transformer_decoder(),
                                     Conv2dOptions::keys(),
                                     Conv3dOptions::keys(),
                                     depthwise_conv2d(),
                                     separable_conv2d(),
                                     conv2d_transpose(),
                                     conv3d_transpose(),
                                     conv1d(),
                                     conv1d_transpose(),
                                     MaxPooling2dOptions::keys(),
                                     AveragePooling2dOptions::keys(),
                                     GlobalMaxPooling2dOptions::keys(),
                                     GlobalAveragePooling2dOptions::keys(),
                                     max_pooling3d(),
                                     average_pooling3d(),
                                     global_max_pooling3d(),
                                     global_average_pooling3d(),
                                     max_pooling1d(),
                                     average_pooling1d(),
                                     global_max_pooling1d(),
                                     global_average_pooling1d(),
                                     BatchNormalizationOptions::keys(),
                                     LayerNormalizationOptions::keys(),
                                     rms_normalization(),
                                     group_normalization(),
                                     unit_normalization(),
                                     spectral_normalization(),
                                     layer_scale(),
                                     normalization(),
                                     rescaling(),
                                     stft_spectrogram(),
                                     zero_padding2d(),
                                     cropping2d(),
                                     upsampling2d(),
                                     zero_padding3d(),
                                     cropping3d(),
                                     upsampling3d(),
                                     zero_padding1d(),
                                     cropping1d(),
                                     upsampling1d(),
                                     DropoutOptions::keys(),
                                     lambda(),
                                     spatial_dropout(),
                                     gaussian_noise(),
                                     gaussian_dropout(),
                                     alpha_dropout(),
                                     ActivationLayerOptions::keys(),
                                     relu(),
                                     leaky_relu(),
                                     elu(),
                                     softmax(),
                                     prelu(),
                                     FlattenOptions::keys(),
                                     reshape(),
                                     permute(),
                                     AddOptions::keys(),
                                     subtract(),
                                     multiply(),
                                     dot(),
                                     gated_linear_unit(),
                                     average(),
                                     maximum(),
                                     minimum(),
                                     ConcatenateOptions::keys(),
                                     ResidualOptions::keys(),
                                     RepeatOptions::keys(),
                                 }};
  return table;
}

}  // namespace trainctl
