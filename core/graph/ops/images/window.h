// The window of a convolution or a pooling over images.
#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace trainctl {

// The padding is in pixels; layers compute it from "same", "valid" or a number.
struct Window {
  std::array<std::int64_t, 2> size{1, 1};  // height, width
  std::array<std::int64_t, 2> strides{1, 1};
  std::array<std::int64_t, 2> dilation{1, 1};
  std::array<std::int64_t, 2> padding_before{0, 0};  // top, left
  std::array<std::int64_t, 2> padding_after{0, 0};   // bottom, right

  // The number of output rows (axis 0) or columns (axis 1) for `input` rows or columns.
  std::int64_t output(int axis, std::int64_t input) const {
    const auto a = static_cast<std::size_t>(axis);
    const std::int64_t span = dilation[a] * (size[a] - 1) + 1;
    return (input + padding_before[a] + padding_after[a] - span) / strides[a] + 1;
  }
  bool operator==(const Window&) const = default;
};

// Returns text such as "3x3 strides=2x2 padding=0,0,1,1", without the values that are defaults.
std::string to_string(const Window& window);

}  // namespace trainctl
