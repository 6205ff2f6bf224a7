// Reads masks: images whose pixels are class numbers.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/tensor/shape.h"

namespace trainctl {

// The value of a pixel without a class.
inline constexpr std::uint8_t no_class = 255;

// Decodes a gray or palette PNG of up to 8 bits and keeps the pixels as they are stored: gray values or palette
// indices. Fills `pixels` with [height, width, 1] and returns that shape. Throws Error{data} with the path before the
// message, also for images of other kinds.
Shape decode_mask(const std::byte* file, std::int64_t bytes, const std::string& path, std::vector<std::byte>& pixels);

// Maps the stored values of masks to classes.
struct MaskClasses {
  std::int64_t classes = 0;
  // For each stored value: its class, no_class, or -1 if the value must not occur.
  std::array<std::int16_t, 256> of_value{};

  // Converts the stored values of a mask with `columns` columns to classes. Throws Error{data} with the path and the
  // position of the first value that must not occur.
  void apply(std::vector<std::byte>& pixels, std::int64_t columns, const std::string& path) const;
};

}  // namespace trainctl
