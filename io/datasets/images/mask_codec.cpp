// Decodes masks and converts their stored values to classes.
#include "io/datasets/images/mask_codec.h"

#include <algorithm>
#include <cstring>

#include "core/base/format.h"
#include "core/base/table.h"
#include "io/datasets/dataset.h"
#include "io/datasets/images/image_codec.h"
#include "io/datasets/images/png_reader.h"

namespace trainctl {
Shape decode_mask(const std::byte* file, std::int64_t bytes, const std::string& path, std::vector<std::byte>& pixels) {
  if (bytes < 8 || std::memcmp(file, "\x89PNG\r\n\x1a\n", 8) != 0)
    data_error(path, "is not a PNG image, as masks must be");
  PngReader reader(file, bytes);
  const auto undecodable = [&] { data_error(path, std::string("cannot be decoded as PNG: ") + reader.message()); };
  if (!reader.begin()) undecodable();
  check_image_size(reader.height(), reader.width(), path, bytes, 1032 * 8);
  if (!reader.holds_numbers() || reader.bits() > 8) {
    data_error(path,
               reader.holds_numbers() ? "has 16 bits per pixel, but class numbers of up to 8 bits are expected"
                                      : "is an image of colors, but class numbers are expected",
               "store masks as gray or palette PNG with a class number for each pixel");
  }
  const Shape shape{reader.height(), reader.width(), 1};
  pixels.resize(static_cast<std::size_t>(shape.count()));
  if (!reader.finish(pixels.data(), PngReader::Encoding::stored)) undecodable();
  return shape;
}

void MaskClasses::apply(std::vector<std::byte>& pixels, std::int64_t columns, const std::string& path) const {
  bool good = true;
  const auto class_of = [&](std::byte value) { return of_value[std::to_integer<std::size_t>(value)]; };
  for (const std::byte value : pixels) good = good && class_of(value) >= 0;
  if (!good) {
    const auto wrong = std::find_if(pixels.begin(), pixels.end(), [&](std::byte value) { return class_of(value) < 0; });
    const std::int64_t at = wrong - pixels.begin();
    const int value = std::to_integer<int>(*wrong);
    data_error(path,
               format("has the value {} at row {}, column {}, which is none of the {}", value, at / columns,
                      at % columns, counted(classes, "class")),
               format("set `ignore: {}` if such pixels have no class, `values` if classes are stored as other numbers "
                      "than 0 to {}, or the right number of `classes`",
                      value, classes - 1));
  }
  for (std::byte& value : pixels) value = static_cast<std::byte>(class_of(value));
}

}  // namespace trainctl
