// A picture for people, of what a network gets as an image.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/tensor/shape.h"

namespace trainctl {

// Red, green and blue bytes, from the upper left pixel on.
struct Picture {
  std::int64_t height = 0, width = 0;
  std::vector<std::uint8_t> rgb;

  std::uint8_t* at(std::int64_t row, std::int64_t column) {
    return rgb.data() + static_cast<std::size_t>((row * width + column) * 3);
  }
  const std::uint8_t* at(std::int64_t row, std::int64_t column) const {
    return rgb.data() + static_cast<std::size_t>((row * width + column) * 3);
  }
};

// Whether a sample of this shape is a picture: height, width, and 1 or 3 channels.
bool is_picture(const Shape& sample);

// The picture of a sample for which is_picture() holds. Its values, which have no range of their own, are spread to
// black and white; where it is larger than 96 pixels a side it is made smaller.
Picture picture_of(std::span<const float> values, const Shape& shape);

// The picture as a PNG file.
std::string png_file(const Picture& picture);

}  // namespace trainctl
