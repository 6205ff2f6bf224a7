// Decodes and encodes PNG.
#include <png.h>

#include "io/datasets/dataset.h"
#include "io/datasets/images/image_codec.h"
#include "io/datasets/images/png_reader.h"

namespace trainctl {

void decode_png(const std::byte* file, std::int64_t bytes, std::int64_t channels, const std::string& path,
                Sample& sample) {
  PngReader reader(file, bytes);
  const auto undecodable = [&] { data_error(path, std::string("cannot be decoded as PNG: ") + reader.message()); };
  if (!reader.begin()) undecodable();
  check_image_size(reader.height(), reader.width(), path, bytes,
                   1032 * 8);  // deflate's largest ratio, times 8 pixels of one bit
  const bool gray = channels == 1 && reader.is_gray();
  sample.shape = sample.whole = {reader.height(), reader.width(), gray ? 1 : 3};
  sample.buffer.resize(static_cast<std::size_t>(sample.shape.count()));
  if (!reader.finish(sample.buffer.data(), gray ? PngReader::Encoding::gray : PngReader::Encoding::rgb)) undecodable();
  sample.values = sample.buffer.data();
}

std::string encode_png(const std::uint8_t* pixels, const Shape& shape) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.height = static_cast<png_uint_32>(shape[0]);
  image.width = static_cast<png_uint_32>(shape[1]);
  image.format = shape[2] == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB;
  std::string file(PNG_IMAGE_PNG_SIZE_MAX(image), '\0');
  png_alloc_size_t size = file.size();
  const bool good = png_image_write_to_memory(&image, file.data(), &size, 0, pixels, 0, nullptr) != 0;
  png_image_free(&image);
  require(good, "a PNG could not be encoded");
  file.resize(size);
  return file;
}

}  // namespace trainctl
