// Bilinear resizing like tf.image.resize(antialias=True) and Pillow: pixels have half-pixel centres; when shrinking,
// the triangle filter is widened by the factor, so that every input pixel contributes.
#pragma once

#include <cstdint>
#include <vector>

#include "io/loader/images/image.h"

namespace trainctl {

// The weights along one axis: output i is the sum over k < taps of weights[i * taps + k] * input[first[i] + k].
struct ResizeAxis {
  std::int64_t from = 0, to = 0;
  std::int64_t taps = 0;
  std::vector<std::int64_t> first;
  std::vector<float> weights;

  // Computes the weights for these sizes, unless the last call had the same sizes.
  void prepare(std::int64_t input, std::int64_t output);
};

// Memory for resize(), reused from image to image.
struct ResizeScratch {
  ResizeAxis vertical, horizontal;
  std::vector<float> rows;         // [height, from width, channels]
  std::vector<float> result;       // [height, width, channels]
  std::vector<std::uint8_t> mask;  // [height, width]
};

// Resizes an image to height x width. The result is float32, not rounded to whole values, and is stored in
// scratch.result.
ImageView resize(const ImageView& image, std::int64_t height, std::int64_t width, ResizeScratch& scratch);

// Resizes a mask, bytes of one channel: each pixel is the nearest input pixel, with half-pixel centres; of two equally
// near pixels, the later one. The result is stored in scratch.mask.
ImageView resize_nearest(const ImageView& mask, std::int64_t height, std::int64_t width, ResizeScratch& scratch);

}  // namespace trainctl
