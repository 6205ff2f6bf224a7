// The operations of RandAugment on images of bytes. They compute the same as torchvision's operations, but round
// results to the nearest byte.
#pragma once

#include <cstdint>

#include "io/loader/images/augmentation.h"

namespace trainctl {

// In all functions the canvas holds bytes. A factor of 1 does not change the image; the comments name the result of
// factor 0, and other factors interpolate or extrapolate.

void adjust_brightness(Canvas& canvas, float factor);  // black
void adjust_contrast(Canvas& canvas, float factor);    // the mean grey
void adjust_color(Canvas& canvas, float factor);       // shades of grey; only of images with three channels
void adjust_sharpness(Canvas& canvas,
                      float factor);  // each pixel is the mean of its 3x3 neighbourhood, with weight 5 for itself

// Keeps the upper `bits` bits of every value.
void posterize(Canvas& canvas, int bits);
// Inverts the values that are at least the threshold.
void solarize(Canvas& canvas, float threshold);
// Scales each channel to the range 0 to 255.
void autocontrast(Canvas& canvas);
// Equalizes each channel's histogram.
void equalize(Canvas& canvas);

}  // namespace trainctl
