// A window over an image, through which a pass reads pixels; crops and flips only move the window.
#pragma once

#include <algorithm>
#include <cstring>
#include <span>

#include "io/loader/images/image.h"
#include "io/loader/images/reverse.h"

namespace trainctl {

// One axis of the window: output i is source element base + step * i; the output is outside of the image if this
// element is not in [begin, end).
struct WindowAxis {
  std::int64_t base = 0, step = 1, size = 0, begin = 0, end = 0;

  explicit WindowAxis(std::int64_t n) : size(n), end(n) {}

  void crop(std::int64_t offset, std::int64_t length) {
    const std::int64_t low = step > 0 ? base : base - (size - 1);
    begin = std::max(begin, low);
    end = std::min(end, low + size);
    base += step * offset;
    size = length;
  }
  void flip() {
    base += step * (size - 1);
    step = -step;
  }
  // Whether the window has exactly the n elements of the image, in their order.
  bool is_whole(std::int64_t n) const { return step == 1 && base == 0 && size == n && end - begin == size; }
};

// Copies rows without changing values; has the interface of AffineRow.
template <class T>
struct StoredRow {
  std::int64_t channels;

  bool uniform() const { return true; }
  void apply(const void* from, DType, std::int64_t count, T* to) const {
    std::memcpy(to, from, static_cast<std::size_t>(count) * sizeof(T));
  }
  void apply_reversed(const void* last, DType, std::int64_t pixels, T* to) const {
    reverse_pixels(static_cast<const T*>(last), pixels, channels, to);
  }
};

// Writes the pixels of the window contiguously, converted by `rows` (an AffineRow or a StoredRow). Pixels outside of
// the image become `outside`: a value for each channel, or one for all.
template <class Rows, class Value>
void read_window(const ImageView& image, const WindowAxis& y, const WindowAxis& x, const Rows& rows,
                 std::span<const Value> outside, Value* to) {
  const std::int64_t channels = image.channels, row = x.size * channels, element = size_of(image.dtype);
  const auto* pixels = static_cast<const std::byte*>(image.data);
  const bool whole = y.is_whole(image.height) && x.is_whole(image.width) && image.stride == row;
  if (whole && (rows.uniform() || y.size == 1)) return rows.apply(pixels, image.dtype, y.size * row, to);
  const auto fill = [&](std::int64_t pixel, std::int64_t count) {
    Value* at = to + pixel * channels;
    if (outside.size() == 1) {
      std::fill_n(at, count * channels, outside[0]);
    } else {
      for (std::int64_t i = 0; i < count; ++i, at += channels) std::copy(outside.begin(), outside.end(), at);
    }
  };
  // Outputs [left, right) of each row are inside the image.
  const std::int64_t left = std::clamp<std::int64_t>(x.step > 0 ? x.begin - x.base : x.base - (x.end - 1), 0, x.size);
  const std::int64_t right = std::clamp<std::int64_t>(x.step > 0 ? x.end - x.base : x.base - x.begin + 1, left, x.size);
  for (std::int64_t i = 0; i < y.size; ++i, to += row) {
    const std::int64_t source = y.base + y.step * i;
    if (source < y.begin || source >= y.end || left == right) {
      fill(0, x.size);
      continue;
    }
    fill(0, left);
    const std::byte* from = pixels + (source * image.stride + (x.base + x.step * left) * channels) * element;
    if (x.step > 0) {
      rows.apply(from, image.dtype, (right - left) * channels, to + left * channels);
    } else {
      rows.apply_reversed(from, image.dtype, right - left, to + left * channels);
    }
    fill(right, x.size - right);
  }
}

}  // namespace trainctl
