// Calls libpng. It reports errors by longjmp: the frames that it jumps over must not hold objects with destructors.
#include "io/datasets/images/png_reader.h"

#include <cstdio>
#include <cstring>

#include <png.h>

#include "core/base/error.h"

namespace trainctl {
namespace {

void ignore_warning(png_structp, png_const_charp) {}

}  // namespace

void PngReader::leave_on_error(png_struct_def* png, const char* message) {
  auto* reader = static_cast<PngReader*>(png_get_error_ptr(png));
  std::snprintf(reader->message_, sizeof reader->message_, "%s", message);
  std::longjmp(reader->leave_, 1);
}

void PngReader::read_bytes(png_struct_def* png, unsigned char* to, std::size_t count) {
  auto* reader = static_cast<PngReader*>(png_get_io_ptr(png));
  if (count > reader->left_) png_error(png, "the file ends too early");
  std::memcpy(to, reader->next_, count);
  reader->next_ += count;
  reader->left_ -= count;
}

PngReader::PngReader(const std::byte* file, std::int64_t bytes) : next_(file), left_(static_cast<std::size_t>(bytes)) {
  png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, this, leave_on_error, ignore_warning);
  info_ = png_ ? png_create_info_struct(png_) : nullptr;
  if (info_) png_set_read_fn(png_, this, read_bytes);
}

PngReader::~PngReader() { png_destroy_read_struct(&png_, &info_, nullptr); }

bool PngReader::begin() {
  if (!info_ || setjmp(leave_)) return false;
  png_read_info(png_, info_);
  return true;
}

std::int64_t PngReader::height() const { return png_get_image_height(png_, info_); }
std::int64_t PngReader::width() const { return png_get_image_width(png_, info_); }
int PngReader::bits() const { return png_get_bit_depth(png_, info_); }
bool PngReader::is_gray() const { return (png_get_color_type(png_, info_) & PNG_COLOR_MASK_COLOR) == 0; }
bool PngReader::holds_numbers() const {
  const int type = png_get_color_type(png_, info_);
  return type == PNG_COLOR_TYPE_GRAY || type == PNG_COLOR_TYPE_PALETTE;
}

bool PngReader::finish(std::byte* pixels, Encoding encoding) {
  if (setjmp(leave_)) return false;
  if (encoding == Encoding::stored) {
    png_set_packing(png_);  // a byte for each pixel
  } else {
    png_set_expand(png_);
    png_set_strip_16(png_);
    png_set_strip_alpha(png_);
    if (encoding == Encoding::rgb && is_gray()) png_set_gray_to_rgb(png_);
  }
  const int passes = png_set_interlace_handling(png_);
  png_read_update_info(png_, info_);
  const auto row = static_cast<std::int64_t>(png_get_rowbytes(png_, info_));
  if (row != width() * (encoding == Encoding::rgb ? 3 : 1)) png_error(png_, "its pixels have another encoding");
  for (int pass = 0; pass < passes; ++pass) {
    for (std::int64_t y = 0; y < height(); ++y) {
      png_read_row(png_, reinterpret_cast<png_bytep>(pixels + y * row), nullptr);
    }
  }
  return true;
}

}  // namespace trainctl
