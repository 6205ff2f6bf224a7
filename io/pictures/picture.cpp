// Converts images of any range of values and any size to bytes.
#include "io/pictures/picture.h"

#include <algorithm>
#include <cmath>

#include "core/base/checked.h"
#include "io/datasets/images/image_codec.h"

namespace trainctl {
namespace {

constexpr std::int64_t max_side = 96;

}  // namespace

bool is_picture(const Shape& sample) { return sample.rank() == 3 && (sample[2] == 1 || sample[2] == 3); }

Picture picture_of(std::span<const float> values, const Shape& shape) {
  const std::int64_t height = shape[0], width = shape[1], channels = shape[2];
  const std::int64_t step = std::max<std::int64_t>(1, divide_up(std::max(height, width), max_side));
  const std::int64_t rows = std::min(step, height), columns = std::min(step, width);  // averaged into one pixel
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  const float spread = *high > *low ? 255 / (*high - *low) : 0;
  // Returns the mean of the image's pixels that become one pixel of the picture.
  const auto value = [&, min = *low](std::int64_t row, std::int64_t column, std::int64_t channel) {
    float sum = 0;
    for (std::int64_t y = row * rows; y < (row + 1) * rows; ++y) {
      for (std::int64_t x = column * columns; x < (column + 1) * columns; ++x) {
        sum += values[static_cast<std::size_t>((y * width + x) * channels + channel)];
      }
    }
    const float mean = (sum / static_cast<float>(rows * columns) - min) * spread;
    return static_cast<std::uint8_t>(std::isfinite(mean) ? std::clamp(std::lround(mean), 0L, 255L) : 0);
  };
  Picture picture{height / rows, width / columns, {}};
  for (std::int64_t row = 0; row < picture.height; ++row) {
    for (std::int64_t column = 0; column < picture.width; ++column) {
      for (const std::int64_t channel : {0, 1, 2}) {
        picture.rgb.push_back(value(row, column, channels == 3 ? channel : 0));
      }
    }
  }
  return picture;
}

std::string png_file(const Picture& picture) {
  return encode_png(picture.rgb.data(), {picture.height, picture.width, 3});
}

}  // namespace trainctl
