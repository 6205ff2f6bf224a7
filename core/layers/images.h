// Functions that layers over images and sequences share: checks of inputs, and reshapes of sequences to images and
// back.
#pragma once

#include "core/layers/layer.h"

namespace trainctl {

// Whether the samples are images (height, width, channels); reports an error if they are not.
bool is_image(Layer& layer, const Feature& input);
// Whether the samples are sequences (steps, channels); reports an error if they are not.
bool is_sequence(Layer& layer, const Feature& input);
// Whether the samples hold tokens, which are whole numbers; reports an error if they do not.
bool holds_tokens(Layer& layer, const Feature& input);

// Reshapes a batch of sequences [N, T, C] to images one pixel high, [N, 1, T, C], and such images back to sequences.
TensorId as_images(Layer& layer, const Feature& sequences);
TensorId as_sequences(Layer& layer, TensorId images);

}  // namespace trainctl
