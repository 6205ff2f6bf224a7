// Decoding and encoding PNG with libpng's simplified interface.
#include <png.h>

#include "io/datasets/dataset.h"
#include "io/datasets/images/image_codec.h"

namespace trainctl {
namespace {

struct PngImage {
  png_image image{};

  PngImage() { image.version = PNG_IMAGE_VERSION; }
  ~PngImage() { png_image_free(&image); }
  PngImage(const PngImage&) = delete;
  PngImage& operator=(const PngImage&) = delete;
};

[[noreturn]] void undecodable(const std::string& path, const PngImage& png) {
  data_error(path, std::string("cannot be decoded as PNG: ") + png.image.message);
}

}  // namespace

void decode_png(const std::byte* file, std::int64_t bytes, std::int64_t channels, const std::string& path,
                Sample& sample) {
  PngImage png;
  if (!png_image_begin_read_from_memory(&png.image, file, static_cast<std::size_t>(bytes))) undecodable(path, png);
  const Shape shape{png.image.height, png.image.width, channels};
  check_image_size(shape[0], shape[1], path);
  check_image_bytes(shape[0], shape[1], bytes, path);
  sample.shape = sample.whole = shape;
  std::vector<std::byte>& pixels = sample.buffer;
  // The alpha channel is decoded and then dropped: without it libpng would blend the image with a background.
  const bool alpha = png.image.format & PNG_FORMAT_FLAG_ALPHA;
  png.image.format = (channels == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB) | (alpha ? PNG_FORMAT_FLAG_ALPHA : 0);
  const std::int64_t stored = channels + (alpha ? 1 : 0), count = shape[0] * shape[1];
  pixels.resize(static_cast<std::size_t>(count * stored));
  if (!png_image_finish_read(&png.image, nullptr, pixels.data(), static_cast<png_int_32>(shape[1] * stored), nullptr)) {
    undecodable(path, png);
  }
  for (std::int64_t i = 0; alpha && i < count; ++i) {
    for (std::int64_t c = 0; c < channels; ++c)
      pixels[static_cast<std::size_t>(i * channels + c)] = pixels[static_cast<std::size_t>(i * stored + c)];
  }
  sample.values = pixels.data();
}

std::string encode_png(const std::uint8_t* pixels, const Shape& shape) {
  PngImage png;
  png.image.height = static_cast<png_uint_32>(shape[0]);
  png.image.width = static_cast<png_uint_32>(shape[1]);
  png.image.format = shape[2] == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB;
  std::string file(PNG_IMAGE_PNG_SIZE_MAX(png.image), '\0');
  png_alloc_size_t size = file.size();
  require(png_image_write_to_memory(&png.image, file.data(), &size, 0, pixels, 0, nullptr) != 0, "a PNG is encoded");
  file.resize(size);
  return file;
}

}  // namespace trainctl
