// Recognizes image formats and calls their decoders.
#include "io/datasets/images/image_codec.h"

#include <algorithm>
#include <string_view>

#include "core/base/clock.h"
#include "core/base/format.h"
#include "io/datasets/dataset.h"

namespace trainctl {
namespace {

using namespace std::string_view_literals;

bool holds_at(std::string_view bytes, std::size_t offset, std::string_view magic) {
  return bytes.substr(std::min(offset, bytes.size())).starts_with(magic);
}

// The name of a known image format that cannot be read; null for unknown formats.
const char* other_format(std::string_view bytes) {
  const auto at = [&](std::size_t offset, std::string_view magic) { return holds_at(bytes, offset, magic); };
  if (at(0, "II*\0"sv) || at(0, "MM\0*"sv) || at(0, "II+\0"sv) || at(0, "MM\0+"sv)) return "TIFF";
  if (at(4, "ftypavif")) return "AVIF";
  if (at(4, "ftyphei") || at(4, "ftypmif1")) return "HEIF";
  if (at(0, "\0\0\0\x0cjP  "sv)) return "JPEG 2000";
  if (at(0, "\0\0\0\x0cJXL "sv) || at(0, "\xff\x0a"sv)) return "JPEG XL";
  return nullptr;
}

// Converts RGB pixels to gray in place.
void make_gray(Sample& sample) {
  const std::int64_t pixels = sample.shape[0] * sample.shape[1];
  auto* values = reinterpret_cast<std::uint8_t*>(sample.buffer.data());
  for (std::int64_t i = 0; i < pixels; ++i) {
    values[i] = gray_of(values[3 * i], values[3 * i + 1], values[3 * i + 2]);
  }
  sample.shape = sample.whole = {sample.shape[0], sample.shape[1], 1};
}

}  // namespace

void check_image_size(std::int64_t height, std::int64_t width, const std::string& path) {
  const bool good = height > 0 && width > 0 && height <= largest_image_side && width <= largest_image_side;
  if (!good || height * width > largest_image_pixels)
    data_error(path, format("has a size of {}x{}, which is not supported", height, width));
}

void check_image_size(std::int64_t height, std::int64_t width, const std::string& path, std::int64_t bytes,
                      std::int64_t max_pixels_per_byte) {
  check_image_size(height, width, path);
  if (height * width / max_pixels_per_byte > bytes) {
    data_error(path, format("has a size of {}x{}, which its {} bytes cannot hold", height, width, bytes));
  }
}

std::optional<ImageFormat> image_format(std::string_view begin) {
  if (begin.starts_with("\xff\xd8\xff")) return ImageFormat::jpeg;
  if (begin.starts_with("\x89PNG\r\n\x1a\n")) return ImageFormat::png;
  if (begin.starts_with("RIFF") && holds_at(begin, 8, "WEBP")) return ImageFormat::webp;
  if (begin.starts_with("GIF87a") || begin.starts_with("GIF89a")) return ImageFormat::gif;
  // Any text may begin with "BM". A BMP has the length of its header at byte 14, which is 12 or from 40 to 124.
  const auto length = begin.size() < 18 ? 0 : static_cast<unsigned char>(begin[14]);
  const bool is_length = length == 12 || (length >= 40 && length <= 124);
  if (begin.starts_with("BM") && is_length && holds_at(begin, 15, "\0\0\0"sv)) return ImageFormat::bmp;
  return std::nullopt;
}

void decode_sample(const std::byte* file, std::int64_t bytes, std::int64_t channels, const std::string& path,
                   Sample& sample) {
  const double start = seconds_now();
  if (bytes == 0) data_error(path, "is empty");
  const std::string_view content(reinterpret_cast<const char*>(file), static_cast<std::size_t>(bytes));
  const std::optional<ImageFormat> format_found = image_format(content);
  if (!format_found) {
    const char* other = other_format(content);
    data_error(path, other ? format("is a {} image, which is not supported: convert it to JPEG or PNG", other)
                           : format("is not a {} image", image_formats));
  }
  sample.warning.clear();
  switch (*format_found) {
    case ImageFormat::jpeg:
      decode_jpeg(file, bytes, channels, path, sample);
      break;
    case ImageFormat::png:
      decode_png(file, bytes, channels, path, sample);
      break;
    case ImageFormat::webp:
      decode_webp(file, bytes, path, sample);
      break;
    case ImageFormat::gif:
      decode_gif(file, bytes, path, sample);
      break;
    case ImageFormat::bmp:
      decode_bmp(file, bytes, path, sample);
      break;
  }
  if (channels == 1 && sample.shape[2] == 3) make_gray(sample);
  sample.dtype = DType::uint8;
  sample.decoding_seconds += seconds_now() - start;
}

}  // namespace trainctl
