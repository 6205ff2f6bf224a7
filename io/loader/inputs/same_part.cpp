// Compares the proportions of images and targets, and which shares of their sides the crops keep.
#include "io/loader/inputs/same_part.h"

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/base/format.h"
#include "io/loader/images/transform.h"

namespace trainctl {
namespace {

// The shares of the stored height and width that steps keep. `rounding` is the sum of what half a pixel is of the sides
// before each crop.
struct KeptPart {
  double height = 1, width = 1;
  double height_rounding = 0, width_rounding = 0;
  const GeometryStep* crop = nullptr;  // the last one
};

KeptPart kept_part(Shape shape, const std::vector<GeometryStep>& steps) {
  KeptPart part;
  for (const GeometryStep& step : steps) {
    const Shape after = shape_after(shape, {step});
    if (step.kind == GeometryStep::Kind::center_crop) {
      const auto height = static_cast<double>(shape[0]), width = static_cast<double>(shape[1]);
      part.height *= static_cast<double>(after[0]) / height;
      part.width *= static_cast<double>(after[1]) / width;
      part.height_rounding += 0.5 / height;
      part.width_rounding += 0.5 / width;
      part.crop = &step;
    }
    shape = after;
  }
  return part;
}

std::string text_of(const KeptPart& part) {
  return format("{:.3g} % of the height and {:.3g} % of the width", 100 * part.height, 100 * part.width);
}

}  // namespace

void require_same_part(const Shape& image, const std::vector<GeometryStep>& image_steps, const Shape& target,
                       const std::vector<GeometryStep>& target_steps, bool own_steps) {
  const KeptPart own = kept_part(image, image_steps), other = kept_part(target, target_steps);
  const auto differ = [](double a, double b, double rounding) { return std::abs(a - b) > rounding + 1e-9; };
  if (!differ(own.height, other.height, own.height_rounding + other.height_rounding) &&
      !differ(own.width, other.width, own.width_rounding + other.width_rounding)) {
    return;
  }
  const GeometryStep& crop = own.crop != nullptr ? *own.crop : *other.crop;
  throw Error(ErrorKind::config, crop.location,
              format("center_crop cuts out different parts of images and of their targets: {} of an image of {}x{}, "
                     "but {} of its target of {}x{}",
                     text_of(own), image[0], image[1], text_of(other), target[0], target[1]),
              own_steps ? "crop the same shares in `transform` and `target_transform`"
                        : "set `target_transform` with a center_crop of the same share, or resize before the crop");
}

std::string problem_of_proportions(const Shape& image, const Shape& target) {
  constexpr double tolerance = 1.1;
  const auto ratio = [](const Shape& shape) { return static_cast<double>(shape[0]) / static_cast<double>(shape[1]); };
  const double quotient = ratio(image) / ratio(target);
  if (quotient <= tolerance && quotient >= 1 / tolerance) return "";
  return format("is {}x{}, but its image is {}x{}, which has other proportions", target[0], target[1], image[0],
                image[1]);
}

}  // namespace trainctl
