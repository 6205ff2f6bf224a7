// The size that a resize brings images to.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "core/tensor/shape.h"

namespace trainctl {

struct ResizeTarget {
  std::int64_t height = 0, width = 0;  // pixels
  bool shorter_side = false;           // `height` is that of the shorter side, and the other side is in proportion

  // The shape behind the resize of an image [height, width, channels].
  Shape of(const Shape& image) const {
    if (!shorter_side) return {height, width, image[2]};
    const auto shorter = static_cast<double>(std::min(image[0], image[1])), to = static_cast<double>(height);
    const auto scaled = [&](std::int64_t side) {
      return std::max<std::int64_t>(1, std::llround(static_cast<double>(side) * to / shorter));
    };
    return {scaled(image[0]), scaled(image[1]), image[2]};
  }
};

}  // namespace trainctl
