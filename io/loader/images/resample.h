// Resamples an image with an affine map of the plane: rotation, zoom, translation, shear.
#pragma once

#include <cstdint>
#include <vector>

#include "core/spec/interpolation.h"
#include "io/loader/images/augmentation.h"

namespace trainctl {

// How the image is continued outside of its borders, with Keras' names.
enum class FillMode {
  constant,  // k k k | a b c | k k k
  nearest,   // a a a | a b c | c c c
  reflect,   // c b a | a b c | c b a
  wrap,      // a b c | a b c | a b c
};

// Maps an output pixel (y, x) to its position in the source; pixels have their centres at whole numbers.
struct PlaneMap {
  double xx = 1, xy = 0, x0 = 0;  // source x = xx * x + xy * y + x0
  double yx = 0, yy = 1, y0 = 0;  // source y = yx * x + yy * y + y0
};

// A rotation by an angle in radians about the centre of an image; for positive angles the image turns counterclockwise.
PlaneMap rotation(double angle, std::int64_t height, std::int64_t width);

struct Sampling {
  FillMode fill_mode = FillMode::reflect;
  Interpolation interpolation = Interpolation::bilinear;
  std::vector<float> fill{0.0f};  // for FillMode::constant: a value for each channel, or one for all
};

// Replaces the image by the resampled image of the same size. Bilinear values are interpolated between the four pixels
// around the source position; the fill mode continues the image. Positions have a step error of at most 2^-32 along a
// row, so that maps by whole pixels copy exactly.
void resample(Canvas& canvas, const PlaneMap& map, const Sampling& sampling);

}  // namespace trainctl
