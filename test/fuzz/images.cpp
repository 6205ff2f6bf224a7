// Decodes images and masks.
#include "io/datasets/images/image_codec.h"

#include "io/datasets/dataset.h"
#include "io/datasets/images/mask_codec.h"
#include "test/fuzz/targets.h"

namespace trainctl::fuzz {
namespace {

const std::byte* begin_of(std::string_view bytes) { return reinterpret_cast<const std::byte*>(bytes.data()); }

void decode(std::string_view bytes, std::int64_t channels, Sample& sample) {
  decode_sample(begin_of(bytes), std::ssize(bytes), channels, "x", sample);
  expect(sample.shape.rank() == 3 && sample.shape[2] == channels, "an image has another number of channels");
  expect(sample.shape.count() <= std::ssize(sample.buffer), "an image is larger than its buffer");
}

// Decodes images of one format alone, in colour, then in gray and for a smaller size. Other bytes are ignored.
void decode(std::string_view bytes, ImageFormat format) {
  if (image_format(bytes) != format) return;
  Sample colour;
  decode(bytes, 3, colour);
  Sample gray;
  gray.resize = ResizeTarget{3, 2, false};
  decode(bytes, 1, gray);
  expect(gray.whole[0] == colour.whole[0] && gray.whole[1] == colour.whole[1], "a gray image has another size");
}

}  // namespace

void fuzz_jpeg(std::string_view bytes) { decode(bytes, ImageFormat::jpeg); }
void fuzz_png(std::string_view bytes) { decode(bytes, ImageFormat::png); }
void fuzz_webp(std::string_view bytes) { decode(bytes, ImageFormat::webp); }
void fuzz_gif(std::string_view bytes) { decode(bytes, ImageFormat::gif); }
void fuzz_bmp(std::string_view bytes) { decode(bytes, ImageFormat::bmp); }

void fuzz_mask(std::string_view bytes) {
  std::vector<std::byte> pixels;
  const Shape shape = decode_mask(begin_of(bytes), std::ssize(bytes), "x", pixels);
  expect(shape.count() == std::ssize(pixels), "a mask has another size than its pixels");
  MaskClasses classes{4, {}};
  classes.of_value.fill(-1);
  for (std::int16_t i = 0; i < 4; ++i) classes.of_value[static_cast<std::size_t>(i)] = i;
  classes.apply(pixels, shape[1], "x");
}

}  // namespace trainctl::fuzz
