// Decodes masks with libpng. It reports errors by longjmp: no object with a destructor may live between.
#include "io/datasets/images/mask_codec.h"

#include <algorithm>
#include <csetjmp>
#include <cstdio>
#include <cstring>

#include <png.h>

#include "core/base/format.h"
#include "io/datasets/dataset.h"
#include "io/datasets/images/image_codec.h"

namespace trainctl {
namespace {

// A file in memory, and what was wrong with it.
struct MaskFile {
  const std::byte* next = nullptr;
  std::size_t left = 0;
  char message[128] = "";
  std::jmp_buf leave;
};

[[noreturn]] void leave_on_error(png_structp png, png_const_charp message) {
  auto* file = static_cast<MaskFile*>(png_get_error_ptr(png));
  std::snprintf(file->message, sizeof file->message, "%s", message);
  std::longjmp(file->leave, 1);
}
void ignore_warning(png_structp, png_const_charp) {}

void read_bytes(png_structp png, png_bytep to, std::size_t count) {
  auto* file = static_cast<MaskFile*>(png_get_io_ptr(png));
  if (count > file->left) png_error(png, "the file ends too early");
  std::memcpy(to, file->next, count);
  file->next += count;
  file->left -= count;
}

class MaskReader {
 public:
  explicit MaskReader(MaskFile& file) : file_(file) {
    png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, &file, leave_on_error, ignore_warning);
    info_ = png_ ? png_create_info_struct(png_) : nullptr;
    if (info_) png_set_read_fn(png_, &file, read_bytes);
  }
  ~MaskReader() { png_destroy_read_struct(&png_, &info_, nullptr); }
  MaskReader(const MaskReader&) = delete;
  MaskReader& operator=(const MaskReader&) = delete;

  // Reads the header. False where it is wrong.
  bool begin() {
    if (!info_ || setjmp(file_.leave)) return false;
    png_read_info(png_, info_);
    return true;
  }
  std::int64_t height() const { return png_get_image_height(png_, info_); }
  std::int64_t width() const { return png_get_image_width(png_, info_); }
  int bits() const { return png_get_bit_depth(png_, info_); }
  bool has_numbers() const {
    const int type = png_get_color_type(png_, info_);
    return type == PNG_COLOR_TYPE_GRAY || type == PNG_COLOR_TYPE_PALETTE;
  }
  bool finish(std::byte* pixels) {
    if (setjmp(file_.leave)) return false;
    png_set_packing(png_);  // a byte for each pixel
    const int passes = png_set_interlace_handling(png_);
    png_read_update_info(png_, info_);
    for (int pass = 0; pass < passes; ++pass) {
      for (std::int64_t y = 0; y < height(); ++y) {
        png_read_row(png_, reinterpret_cast<png_bytep>(pixels + y * width()), nullptr);
      }
    }
    png_read_end(png_, nullptr);
    return true;
  }

 private:
  MaskFile& file_;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
};

[[noreturn]] void undecodable(const std::string& path, const MaskFile& file) {
  data_error(path, std::string("cannot be decoded as PNG: ") + file.message);
}

}  // namespace

Shape decode_mask(const std::byte* file, std::int64_t bytes, const std::string& path, std::vector<std::byte>& pixels) {
  if (bytes < 8 || std::memcmp(file, "\x89PNG\r\n\x1a\n", 8) != 0) data_error(path, "is no PNG image, as masks are");
  MaskFile source{file, static_cast<std::size_t>(bytes), "", {}};
  MaskReader reader(source);
  if (!reader.begin()) undecodable(path, source);
  check_image_size(reader.height(), reader.width(), path);
  check_image_bytes(reader.height(), reader.width(), bytes, path);
  if (!reader.has_numbers() || reader.bits() > 8) {
    data_error(path,
               reader.has_numbers() ? "has 16 bits a pixel, where class numbers of up to 8 bits are expected"
                                    : "is an image of colors, where class numbers are expected",
               "store masks as PNG of gray values or of a palette: a class number for each pixel");
  }
  const Shape shape{reader.height(), reader.width(), 1};
  pixels.resize(static_cast<std::size_t>(shape.count()));
  if (!reader.finish(pixels.data())) undecodable(path, source);
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
               format("has the value {} at row {}, column {}, which stands for none of the {} classes", value,
                      at / columns, at % columns, classes),
               format("state `ignore: {}` where such pixels have no class, `values` where classes are stored as other "
                      "numbers than 0 to {}, or the right number of `classes`",
                      value, classes - 1));
  }
  for (std::byte& value : pixels) value = static_cast<std::byte>(class_of(value));
}

}  // namespace trainctl
