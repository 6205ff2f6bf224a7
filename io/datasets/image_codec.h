// Decoding of JPEG (libjpeg-turbo) and PNG (libpng) files to 8 bits a channel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/tensor/shape.h"

namespace trainctl {

// Images larger than this in either direction are refused: no header makes us allocate more.
inline constexpr std::int64_t largest_image_side = 32768;
inline constexpr std::int64_t largest_image_pixels = std::int64_t{1} << 28;
inline constexpr std::int64_t largest_image_file = std::int64_t{1} << 30;  // bytes

// The format is told by the first bytes. `channels` is 3 (RGB) or 1 (gray); transparency is dropped, the inks of CMYK
// become light. Fills `pixels` with [height, width, channels], whose shape is returned. Throws Error{data} with the
// path in front.
Shape decode_image(const std::byte* file, std::int64_t bytes, std::int64_t channels, const std::string& path,
                   std::vector<std::byte>& pixels);

// One for each format; used by decode_image.
Shape decode_jpeg(const std::byte* file, std::int64_t bytes, std::int64_t channels, const std::string& path,
                  std::vector<std::byte>& pixels);
Shape decode_png(const std::byte* file, std::int64_t bytes, std::int64_t channels, const std::string& path,
                 std::vector<std::byte>& pixels);

// Throws where the size is zero or beyond the limits above.
void check_image_size(std::int64_t height, std::int64_t width, const std::string& path);

}  // namespace trainctl
