// Bilinear resizing, as tf.image.resize(antialias=True) and Pillow do it: half-pixel centres; when shrinking, the
// triangle is widened by the factor, so that every pixel counts.
#pragma once

#include <cstdint>
#include <vector>

#include "io/loader/image.h"

namespace trainctl {

// The weights along one axis: output i is the sum over k of weights[i * taps + k] * input[first[i] + k].
struct ResizeAxis {
  std::int64_t from = 0, to = 0;
  std::int64_t taps = 0;
  std::vector<std::int64_t> first;
  std::vector<float> weights;

  // Fills it for these sizes; does nothing where they are the same as before.
  void prepare(std::int64_t input, std::int64_t output);
};

// Reused from image to image.
struct ResizeScratch {
  ResizeAxis vertical, horizontal;
  std::vector<float> rows;    // [height, from width, channels]
  std::vector<float> result;  // [height, width, channels]
};

// The image as float32 of another size, in scratch.result. No rounding to whole values.
ImageView resize(const ImageView& image, std::int64_t height, std::int64_t width, ResizeScratch& scratch);

}  // namespace trainctl
