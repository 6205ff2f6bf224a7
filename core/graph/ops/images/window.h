// The window of a convolution or a pooling over images, or of a convolution over volumes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace trainctl {

// A window with `axes` dimensions: height and width, or depth, height and width. The padding is in pixels; layers
// compute it from "same", "valid" or a number.
template <std::size_t axes>
struct WindowOf {
  using Sizes = std::array<std::int64_t, axes>;

  Sizes size = filled(1);
  Sizes strides = filled(1);
  Sizes dilation = filled(1);
  Sizes padding_before{};  // at the beginning of each axis: above and on the left of an image
  Sizes padding_after{};   // at the end of each axis: below and on the right of an image

  // Returns the size of the output along an axis for an input of the size `input` along that axis.
  std::int64_t output(int axis, std::int64_t input) const {
    const auto a = static_cast<std::size_t>(axis);
    const std::int64_t span = dilation[a] * (size[a] - 1) + 1;
    return (input + padding_before[a] + padding_after[a] - span) / strides[a] + 1;
  }
  bool operator==(const WindowOf&) const = default;

 private:
  static constexpr Sizes filled(std::int64_t value) {
    Sizes sizes{};
    sizes.fill(value);
    return sizes;
  }
};

using Window = WindowOf<2>;
using Window3d = WindowOf<3>;

// Returns text such as "3x3 strides=2x2 padding=0,0,1,1", without the values that are defaults.
template <std::size_t axes>
std::string to_string(const WindowOf<axes>& window);

}  // namespace trainctl
