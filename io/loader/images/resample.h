// Resampling of an image by an affine map of the plane: rotation, zoom, translation, shear.
#pragma once

#include <cstdint>
#include <vector>

#include "core/spec/interpolation.h"
#include "io/loader/images/augmentation.h"

namespace trainctl {

// How the image goes on outside of itself, with Keras' names.
enum class FillMode {
  constant,  // k k k | a b c | k k k
  nearest,   // a a a | a b c | c c c
  reflect,   // c b a | a b c | c b a
  wrap,      // a b c | a b c | a b c
};

// The place in the source that an output pixel (y, x) is read at; pixels have their centres at whole numbers.
struct PlaneMap {
  double xx = 1, xy = 0, x0 = 0;  // source x = xx * x + xy * y + x0
  double yx = 0, yy = 1, y0 = 0;  // source y = yx * x + yy * y + y0
};

// A rotation by an angle in radians about the middle of an image; positive: the picture turns counterclockwise.
PlaneMap rotation(double angle, std::int64_t height, std::int64_t width);

struct Sampling {
  FillMode fill_mode = FillMode::reflect;
  Interpolation interpolation = Interpolation::bilinear;
  std::vector<float> fill{0.0f};  // of constant: a value for each channel, or one for all
};

// Replaces the image by what the map makes of it, of the same size. Bilinear values lie between the four pixels of the
// image, continued by the fill mode, around the place; places are exact to 2^-32 at each step of a row, so that maps of
// whole pixels copy exactly.
void resample(Canvas& canvas, const PlaneMap& map, const Sampling& sampling);

}  // namespace trainctl
