// Decodes JPEG (libjpeg-turbo) and PNG (libpng) files to 8 bits per channel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/tensor/shape.h"
#include "io/datasets/dataset.h"

namespace trainctl {

// Larger images are refused, in pixels of a side, pixels and bytes of a file: the sizes in a header cannot make the
// decoder allocate more.
inline constexpr std::int64_t largest_image_side = 32768;
inline constexpr std::int64_t largest_image_pixels = std::int64_t{1} << 28;
inline constexpr std::int64_t largest_image_file = std::int64_t{1} << 30;  // bytes

// Decodes an image whose format is recognized by its first bytes. `channels` is 3 (RGB) or 1 (gray); transparency is
// dropped, CMYK is converted. Fills `pixels` with [height, width, channels] and returns that shape. Throws Error{data}
// with the path before the message.
Shape decode_image(const std::byte* file, std::int64_t bytes, std::int64_t channels, const std::string& path,
                   std::vector<std::byte>& pixels);

// Decodes an image into a sample: its shape, its type and its values.
void decode_sample(const std::byte* file, std::int64_t bytes, std::int64_t channels, const std::string& path,
                   Sample& sample);

// The decoders of the two formats, with the arguments and errors of decode_image().
Shape decode_jpeg(const std::byte* file, std::int64_t bytes, std::int64_t channels, const std::string& path,
                  std::vector<std::byte>& pixels);
Shape decode_png(const std::byte* file, std::int64_t bytes, std::int64_t channels, const std::string& path,
                 std::vector<std::byte>& pixels);

// Throws Error{data} where a size is zero or above the limits.
void check_image_size(std::int64_t height, std::int64_t width, const std::string& path);

}  // namespace trainctl
