// Telling image formats apart.
#include "io/datasets/image_codec.h"

#include <cstring>

#include "core/base/format.h"
#include "io/datasets/dataset.h"

namespace trainctl {

void check_image_size(std::int64_t height, std::int64_t width, const std::string& path) {
  const bool good = height > 0 && width > 0 && height <= largest_image_side && width <= largest_image_side;
  if (!good || height * width > largest_image_pixels)
    data_error(path, format("has a size of {}x{}, which is not read", height, width));
}

Shape decode_image(const std::byte* file, std::int64_t bytes, std::int64_t channels, const std::string& path,
                   std::vector<std::byte>& pixels) {
  if (bytes >= 3 && std::memcmp(file, "\xff\xd8\xff", 3) == 0) return decode_jpeg(file, bytes, channels, path, pixels);
  if (bytes >= 8 && std::memcmp(file, "\x89PNG\r\n\x1a\n", 8) == 0)
    return decode_png(file, bytes, channels, path, pixels);
  data_error(path, "is neither a JPEG nor a PNG image", "remove it, or set `on_error: skip`");
}

}  // namespace trainctl
