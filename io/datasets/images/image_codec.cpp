// Recognizes image formats.
#include "io/datasets/images/image_codec.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "core/base/clock.h"
#include "core/base/format.h"
#include "io/datasets/dataset.h"

namespace trainctl {
namespace {

// The name of a known image format that cannot be read; null for unknown formats.
const char* other_format(std::string_view bytes) {
  const auto at = [&](std::size_t offset, std::string_view magic) {
    return bytes.substr(std::min(offset, bytes.size())).starts_with(magic);
  };
  using namespace std::string_view_literals;
  if (at(0, "II*\0"sv) || at(0, "MM\0*"sv) || at(0, "II+\0"sv) || at(0, "MM\0+"sv)) return "TIFF";
  if (at(0, "GIF8")) return "GIF";
  if (at(0, "BM")) return "BMP";
  if (at(0, "RIFF") && at(8, "WEBP")) return "WebP";
  if (at(4, "ftypavif")) return "AVIF";
  if (at(4, "ftyphei") || at(4, "ftypmif1")) return "HEIF";
  if (at(0, "\0\0\0\x0cjP  "sv)) return "JPEG 2000";
  if (at(0, "\0\0\0\x0cJXL "sv) || at(0, "\xff\x0a"sv)) return "JPEG XL";
  return nullptr;
}

}  // namespace

void check_image_size(std::int64_t height, std::int64_t width, const std::string& path) {
  const bool good = height > 0 && width > 0 && height <= largest_image_side && width <= largest_image_side;
  if (!good || height * width > largest_image_pixels)
    data_error(path, format("has a size of {}x{}, which is not read", height, width));
}

void check_image_bytes(std::int64_t height, std::int64_t width, std::int64_t bytes, const std::string& path) {
  // PNG's pixels of one bit take 1/8256 byte at least (deflate shortens to 1/1032), JPEG's in one colour 1/512.
  constexpr std::int64_t most_pixels_of_a_byte = 16384, always_decoded = 1 << 20;
  if (height * width <= always_decoded + most_pixels_of_a_byte * bytes) return;
  data_error(path, format("is truncated: {}x{} pixels do not fit into {} bytes", height, width, bytes),
             "get the file again");
}

void decode_sample(const std::byte* file, std::int64_t bytes, std::int64_t channels, const std::string& path,
                   Sample& sample) {
  const double start = seconds_now();
  if (bytes >= 3 && std::memcmp(file, "\xff\xd8\xff", 3) == 0) {
    decode_jpeg(file, bytes, channels, path, sample);
  } else if (bytes >= 8 && std::memcmp(file, "\x89PNG\r\n\x1a\n", 8) == 0) {
    decode_png(file, bytes, channels, path, sample);
  } else if (bytes == 0) {
    data_error(path, "is empty");
  } else {
    const char* other = other_format({reinterpret_cast<const char*>(file), static_cast<std::size_t>(bytes)});
    data_error(path,
               other ? format("is a {} image, neither JPEG nor PNG", other) : "is neither a JPEG nor a PNG image");
  }
  sample.dtype = DType::uint8;
  sample.decoding_seconds += seconds_now() - start;
}

}  // namespace trainctl
