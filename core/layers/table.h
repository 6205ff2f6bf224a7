// The table of layers; table.cpp has one line for each layer.
#pragma once

#include "core/spec/values.h"

namespace trainctl {

// Sections of layers that have no header.
Section activation();
Section additive_attention();
Section alpha_dropout();
Section attention();
Section average();
Section batch_normalization();
Section bidirectional();
Section average_pooling1d();
Section average_pooling3d();
Section category_encoding();
Section class_token();
Section conv_lstm1d();
Section conv_lstm2d();
Section conv_lstm3d();
Section conv1d();
Section conv1d_transpose();
Section conv2d_transpose();
Section conv3d_transpose();
Section cropping1d();
Section cropping2d();
Section cropping3d();
Section depthwise_conv1d();
Section depthwise_conv2d();
Section dot();
Section einsum_dense();
Section elu();
Section embedding();
Section flatten();
Section gated_linear_unit();
Section gaussian_dropout();
Section gaussian_noise();
Section global_average_pooling1d();
Section global_average_pooling3d();
Section global_max_pooling1d();
Section global_max_pooling3d();
Section group_normalization();
Section group_query_attention();
Section gru();
Section lambda();
Section layer_normalization();
Section layer_scale();
Section leaky_relu();
Section lstm();
Section masking();
Section max_pooling1d();
Section max_pooling3d();
Section maximum();
Section minimum();
Section multiply();
Section normalization();
Section permute();
Section position_embedding();
Section prelu();
Section relu();
Section repeat();
Section rescaling();
Section repeat_vector();
Section reshape();
Section residual();
Section reversible_embedding();
Section rms_normalization();
Section rotary_embedding();
Section segment_embedding();
Section separable_conv1d();
Section separable_conv2d();
Section simple_rnn();
Section softmax();
Section spatial_dropout();
Section spectral_normalization();
Section stft_spectrogram();
Section subtract();
Section take_position();
Section time_distributed();
Section token_and_position_embedding();
Section transformer_decoder();
Section transformer_encoder();
Section unit_normalization();
Section upsampling1d();
Section upsampling2d();
Section upsampling3d();
Section zero_padding1d();
Section zero_padding2d();
Section zero_padding3d();

// The table of all layers.
const ChoiceTable& layer_choices();
using LayerList = ChoicesOf<layer_choices>;

}  // namespace trainctl
