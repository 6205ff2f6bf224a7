// A view of a rectangle of pixels, which does not own the memory.
#pragma once

#include <cstdint>

#include "core/tensor/dtype.h"
#include "core/tensor/shape.h"

namespace trainctl {

struct ImageView {
  const void* data = nullptr;
  DType dtype = DType::uint8;  // uint8, float32 or int32
  std::int64_t height = 0, width = 0, channels = 0;
  std::int64_t stride = 0;  // elements from one row to the next

  Shape shape() const { return {height, width, channels}; }
  // The rectangle of rows x columns pixels at row y and column x, which must be inside the image.
  ImageView crop(std::int64_t y, std::int64_t x, std::int64_t rows, std::int64_t columns) const {
    const std::int64_t offset = (y * stride + x * channels) * size_of(dtype);
    return {static_cast<const std::byte*>(data) + offset, dtype, rows, columns, channels, stride};
  }
};

// Views a sample of any shape as an image: shape [h, w, c] is unchanged; other shapes become one row of pixels whose
// channels are the last dimension.
inline ImageView as_image(const void* data, DType dtype, const Shape& shape) {
  if (shape.rank() == 3) return {data, dtype, shape[0], shape[1], shape[2], shape[1] * shape[2]};
  const std::int64_t channels = shape.rank() == 0 ? 1 : shape.back();
  return {data, dtype, 1, shape.count() / channels, channels, shape.count()};
}

}  // namespace trainctl
