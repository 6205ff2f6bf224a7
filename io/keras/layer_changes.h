// The translations of Keras' layers that are more than options of the same name: each changes or replaces the layers
// that stand for one Keras layer.
#pragma once

#include "io/keras/layers.h"

namespace trainctl {

class LayerReader;

namespace keras {

void relu(LayerReader& reader, Translation& result);
void leaky_relu(LayerReader& reader, Translation& result);
void elu(LayerReader& reader, Translation& result);
void softmax(LayerReader& reader, Translation& result);
void identity(LayerReader& reader, Translation& result);
void activation(LayerReader& reader, Translation& result);
void dropout(LayerReader& reader, Translation& result);
void pooling(LayerReader& reader, Translation& result);
void normalization(LayerReader& reader, Translation& result);
void layer_scale(LayerReader& reader, Translation& result);
void stochastic_depth(LayerReader& reader, Translation& result);
void attention(LayerReader& reader, Translation& result);
void einsum_dense(LayerReader& reader, Translation& result);
void decoder(LayerReader& reader, Translation& result);
void stft_spectrogram(LayerReader& reader, Translation& result);
void spectral_normalization(LayerReader& reader, Translation& result);
void time_distributed(LayerReader& reader, Translation& result);

// `positions`: 1, 2 or 3 dimensions over which is pooled.
template <int positions>
void global_pooling(LayerReader& reader, Translation& result);

}  // namespace keras
}  // namespace trainctl
