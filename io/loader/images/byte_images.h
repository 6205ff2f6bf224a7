// Operations on images of bytes that RandAugment chooses from, with torchvision's meaning, but results rounded to the
// nearest byte.
#pragma once

#include <cstdint>

#include "io/loader/images/augmentation.h"

namespace trainctl {

// In all of these the canvas holds bytes. A factor of 1 changes nothing, one of 0 gives the image that is named.

void adjust_brightness(Canvas& canvas, float factor);  // black
void adjust_contrast(Canvas& canvas, float factor);    // the mean grey
void adjust_color(Canvas& canvas, float factor);       // shades of grey; only of images with three channels
void adjust_sharpness(Canvas& canvas, float factor);   // each pixel the mean of its 3x3 neighbours, weighed 5 itself

// Keeps the upper bits of every value.
void posterize(Canvas& canvas, int bits);
// Inverts values from the threshold on.
void solarize(Canvas& canvas, float threshold);
// Stretches each channel to 0 to 255.
void autocontrast(Canvas& canvas);
// Makes each channel's histogram even.
void equalize(Canvas& canvas);

}  // namespace trainctl
