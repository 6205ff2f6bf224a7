// Checks that an image and its target, which is another image, have the same proportions and show the same part.
#pragma once

#include <string>
#include <vector>

#include "core/tensor/shape.h"

namespace trainctl {

struct GeometryStep;

// Throws Error{config} with the line of a center_crop if the fixed steps keep other shares of the heights and widths of
// images than of their targets, by more than the rounding to whole pixels explains. The shapes are the stored ones.
// `own_steps`: targets have the steps of `target_transform`.
void require_same_part(const Shape& image, const std::vector<GeometryStep>& image_steps, const Shape& target,
                       const std::vector<GeometryStep>& target_steps, bool own_steps);

// "is 20x30, but its image is 10x10, which has other proportions" if the ratios of the sides of a target and of its
// image differ by more than the rounding to whole pixels explains; otherwise "".
std::string problem_of_proportions(const Shape& image, const Shape& target);

}  // namespace trainctl
