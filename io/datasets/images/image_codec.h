// Decodes JPEG (libjpeg-turbo) and PNG (libpng) files to 8 bits per channel, and encodes PNG.
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

// Decodes an image whose format is recognized by its first bytes into a sample: its shapes, type and values [height,
// width, channels]. `channels` is 3 (RGB) or 1 (gray); transparency is dropped, CMYK is converted. A JPEG of which
// sample.resize needs half the height and width at most is decoded to a half, a quarter or an eighth of its size, in
// the DCT domain: the smallest that is not below what the resize gives (as Pillow's draft mode does). Throws
// Error{data} with the path before the message.
void decode_sample(const std::byte* file, std::int64_t bytes, std::int64_t channels, const std::string& path,
                   Sample& sample);

// The decoders of the two formats, with the arguments and errors of decode_sample().
void decode_jpeg(const std::byte* file, std::int64_t bytes, std::int64_t channels, const std::string& path,
                 Sample& sample);
void decode_png(const std::byte* file, std::int64_t bytes, std::int64_t channels, const std::string& path,
                Sample& sample);

// The bytes of a PNG file of pixels [height, width, channels], gray of one channel or RGB of three.
std::string encode_png(const std::uint8_t* pixels, const Shape& shape);

// Throws Error{data} where a size is zero or above the limits.
void check_image_size(std::int64_t height, std::int64_t width, const std::string& path);

// Throws Error{data} if no file of so many bytes can hold an image of this size: a header alone is no reason to take
// memory.
void check_image_bytes(std::int64_t height, std::int64_t width, std::int64_t bytes, const std::string& path);

}  // namespace trainctl
