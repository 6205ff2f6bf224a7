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

// Larger images are refused, in pixels of a side, pixels and bytes of a file: the sizes in a header cannot make the
// decoder allocate more.
inline constexpr std::int64_t largest_image_side = 32768;
inline constexpr std::int64_t largest_image_pixels = std::int64_t{1} << 28;
inline constexpr std::int64_t largest_image_file = std::int64_t{1} << 30;  // bytes

enum class ImageFormat { jpeg, png, webp, gif, bmp };
// The names of the formats, for messages.
inline constexpr const char* image_formats = "JPEG, PNG, WebP, GIF or BMP";
// The first bytes of a file that tell its format, and the format; nothing where it is none of these.
inline constexpr std::int64_t format_bytes = 18;
std::optional<ImageFormat> image_format(std::string_view begin);

// The gray of a colour: the luma of ITU-R BT.601, which JPEG stores, rounded. PNG, WebP, GIF and BMP files of colours
// therefore give the gray that JPEG files do.
constexpr std::uint8_t gray_of(int red, int green, int blue) {
  return static_cast<std::uint8_t>((19595 * red + 38470 * green + 7471 * blue + 32768) >> 16);
}

// Decodes an image whose format is recognized by its first bytes into a sample: its shapes, type, values [height,
// width, channels] and warning. `channels` is 3 (RGB) or 1 (gray); transparency is dropped and shows the colour
// beneath, CMYK is converted, 16 bits are cut to the upper 8, and neither gamma, colour profiles nor EXIF's orientation
// are looked at, as by Keras' loader. Of an animation the first picture is taken. A JPEG of which sample.resize needs
// half the height and width at most is decoded to a half, a quarter or an eighth of its size, in the DCT domain: the
// smallest that is not below what the resize gives (as Pillow's draft mode does). Throws Error{data} with the path
// before the message.
void decode_sample(const std::byte* file, std::int64_t bytes, std::int64_t channels, const std::string& path,
                   Sample& sample);

// The decoders of the formats, with the arguments and errors of decode_sample(). Where `channels` is 1, a PNG of
// colours still gives three; the last three always give three.
void decode_jpeg(const std::byte* file, std::int64_t bytes, std::int64_t channels, const std::string& path,
                 Sample& sample);
void decode_png(const std::byte* file, std::int64_t bytes, std::int64_t channels, const std::string& path,
                Sample& sample);
void decode_webp(const std::byte* file, std::int64_t bytes, const std::string& path, Sample& sample);
void decode_gif(const std::byte* file, std::int64_t bytes, const std::string& path, Sample& sample);
void decode_bmp(const std::byte* file, std::int64_t bytes, const std::string& path, Sample& sample);

// The bytes of a PNG file of pixels [height, width, channels], gray of one channel or RGB of three.
std::string encode_png(const std::uint8_t* pixels, const Shape& shape);

// Throws Error{data} where a size is zero or above the limits.
void check_image_size(std::int64_t height, std::int64_t width, const std::string& path);
// The same, also where so many bytes of a file cannot hold the pixels, of which the format packs no more than
// `most_in_byte` into a byte: what a header only claims takes no memory.
void check_image_size(std::int64_t height, std::int64_t width, const std::string& path, std::int64_t bytes,
                      std::int64_t most_in_byte);

}  // namespace trainctl
