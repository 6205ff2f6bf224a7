// What layers over images and sequences share: the errors of other inputs, and sequences as images.
#pragma once

#include "core/layers/layer.h"

namespace trainctl {

// Whether the samples are images (height, width, channels); reports it where they are not.
bool is_image(Layer& layer, const Feature& input);
// Whether the samples are sequences (steps, channels); reports it where they are not.
bool is_sequence(Layer& layer, const Feature& input);

// A batch of sequences [N, T, C] as images one pixel high, [N, 1, T, C], and such images as sequences again.
TensorId as_images(Layer& layer, const Feature& sequences);
TensorId as_sequences(Layer& layer, TensorId images);

}  // namespace trainctl
