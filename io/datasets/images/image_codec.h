// Decodes JPEG, PNG, WebP, GIF and BMP files to 8 bits per channel, and encodes PNG.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/tensor/shape.h"
#include "io/datasets/dataset.h"

namespace trainctl {

// The largest images that are read: pixels of a side, pixels in all, and bytes of the file. They limit the memory that
// a decoder allocates for the sizes in a header.
inline constexpr std::int64_t largest_image_side = 32768;
inline constexpr std::int64_t largest_image_pixels = std::int64_t{1} << 28;
inline constexpr std::int64_t largest_image_file = std::int64_t{1} << 30;  // bytes

enum class ImageFormat { jpeg, png, webp, gif, bmp };
// The names of the formats, for messages.
inline constexpr const char* image_formats = "JPEG, PNG, WebP, GIF or BMP";
// The number of bytes at the beginning of a file that determine its format.
inline constexpr std::int64_t format_bytes = 18;
// Returns the format of a file that begins with these bytes; nullopt if the format is unknown.
std::optional<ImageFormat> image_format(std::string_view begin);

// The gray value of a colour: the luma of ITU-R BT.601, which JPEG stores, rounded. Colour files of all formats are
// therefore converted to the same gray values as JPEG files.
constexpr std::uint8_t gray_of(int red, int green, int blue) {
  return static_cast<std::uint8_t>((19595 * red + 38470 * green + 7471 * blue + 32768) >> 16);
}

// Decodes an image, whose format is recognized by its first bytes, into a sample: sets its shapes, type, values
// [height, width, channels] and warning. `channels` is 3 (RGB) or 1 (gray). Like Keras' loader, it drops transparency,
// so that the colour beneath shows, converts CMYK, keeps the upper 8 of 16 bits, and ignores gamma, colour profiles and
// EXIF's orientation. It decodes the first frame of an animation. If sample.resize needs at most half the height and
// width of a JPEG, the JPEG is decoded in the DCT domain to a half, a quarter or an eighth of its size. Of these sizes,
// the smallest one that is not below the size of the resize is chosen (like Pillow's draft mode). Throws Error{data}
// with the path before the message.
void decode_sample(const std::byte* file, std::int64_t bytes, std::int64_t channels, const std::string& path,
                   Sample& sample);

// The decoders of the formats, with the arguments and errors of decode_sample(). If `channels` is 1, decode_png() still
// returns three channels for a colour image. The decoders without `channels` always return three.
void decode_jpeg(const std::byte* file, std::int64_t bytes, std::int64_t channels, const std::string& path,
                 Sample& sample);
void decode_png(const std::byte* file, std::int64_t bytes, std::int64_t channels, const std::string& path,
                Sample& sample);
void decode_webp(const std::byte* file, std::int64_t bytes, const std::string& path, Sample& sample);
void decode_gif(const std::byte* file, std::int64_t bytes, const std::string& path, Sample& sample);
void decode_bmp(const std::byte* file, std::int64_t bytes, const std::string& path, Sample& sample);

// Returns the bytes of a PNG file with these pixels [height, width, channels]: gray (one channel) or RGB (three).
std::string encode_png(const std::uint8_t* pixels, const Shape& shape);

// Throws Error{data} if a size is zero or above the limits.
void check_image_size(std::int64_t height, std::int64_t width, const std::string& path);
// Also throws Error{data} if the file's `bytes` cannot hold this number of pixels; the format packs at most
// `max_pixels_per_byte` pixels into a byte. This prevents allocating memory for a wrong size in a header.
void check_image_size(std::int64_t height, std::int64_t width, const std::string& path, std::int64_t bytes,
                      std::int64_t max_pixels_per_byte);

}  // namespace trainctl
