// Masks: images whose pixels are class numbers.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/tensor/shape.h"

namespace trainctl {

// A pixel without a class.
inline constexpr std::uint8_t no_class = 255;

// Reads a PNG of gray values or of a palette, of up to 8 bits, whose pixels are kept as they are stored: gray values or
// places in the palette. Fills `pixels` with [height, width, 1] and returns that shape. Throws Error{data} with the
// path before the message, also for images of other kinds.
Shape decode_mask(const std::byte* file, std::int64_t bytes, const std::string& path, std::vector<std::byte>& pixels);

// What the pixels of masks stand for: by stored value the class, no_class, or -1 for a value that must not occur.
struct MaskClasses {
  std::int64_t classes = 0;
  std::array<std::int16_t, 256> of_value{};

  // Turns the stored values of a mask of so many columns into classes. Throws Error{data} with the path at the first
  // value that stands for nothing.
  void apply(std::vector<std::byte>& pixels, std::int64_t columns, const std::string& path) const;
};

}  // namespace trainctl
