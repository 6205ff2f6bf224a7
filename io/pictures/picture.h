// Converts images from the values that a network reads to pictures that people can view.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/tensor/shape.h"

namespace trainctl {

// A picture as red, green and blue bytes of each pixel, in rows from the upper left.
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

// Converts a sample for which is_picture() is true. Its values may have any range; they are scaled so that the smallest
// becomes black and the largest white. Images of more than 96 pixels a side are reduced.
Picture picture_of(std::span<const float> values, const Shape& shape);

// Returns the bytes of a PNG file.
std::string png_file(const Picture& picture);

}  // namespace trainctl
