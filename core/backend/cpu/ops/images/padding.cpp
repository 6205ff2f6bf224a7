// Adds borders of zeros to images, and removes them, by copying rows.
#include "core/graph/ops/images/padding.h"

#include <cstring>

#include "core/backend/cpu/kernels.h"

namespace trainctl::cpu {
namespace {

// The numbers of rows and the bytes of a row, with borders (outer) and without them (inner).
struct BorderedRows {
  std::int64_t images, outer_rows, inner_rows, above;
  std::int64_t outer_bytes, inner_bytes, left_bytes;  // bytes of a row, and of its left border

  BorderedRows(const TensorType& outer, const TensorType& inner, const Borders& borders)
      : images(outer.shape[0]), outer_rows(outer.shape[1]), inner_rows(inner.shape[1]), above(borders.before[0]) {
    const std::int64_t pixel = outer.shape[3] * size_of(outer.dtype);
    outer_bytes = outer.shape[2] * pixel;
    inner_bytes = inner.shape[2] * pixel;
    left_bytes = borders.before[1] * pixel;
  }
};

}  // namespace

Lowering lower_pad2d(const LowerContext& context) {
  const BorderedRows shape(context.output(0), context.input(0), context.op.as<Pad2d>().borders);
  return own_kernel(context, [shape](const Buffers& buffers) {
    const std::byte* x = buffers.in<std::byte>(0);
    std::byte* y = buffers.out<std::byte>(0);
    const std::int64_t grain = std::max<std::int64_t>(1, 4 * element_grain / shape.outer_bytes);
    parallel_ranges(shape.images * shape.outer_rows, grain, [=](std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < end; ++row) {
        const std::int64_t inner = row % shape.outer_rows - shape.above;
        std::byte* to = y + row * shape.outer_bytes;
        if (inner < 0 || inner >= shape.inner_rows) {
          std::memset(to, 0, static_cast<std::size_t>(shape.outer_bytes));
          continue;
        }
        const std::int64_t from = row / shape.outer_rows * shape.inner_rows + inner;
        const std::int64_t right = shape.left_bytes + shape.inner_bytes;
        std::memset(to, 0, static_cast<std::size_t>(shape.left_bytes));
        std::memcpy(to + shape.left_bytes, x + from * shape.inner_bytes, static_cast<std::size_t>(shape.inner_bytes));
        std::memset(to + right, 0, static_cast<std::size_t>(shape.outer_bytes - right));
      }
    });
  });
}

Lowering lower_crop2d(const LowerContext& context) {
  const BorderedRows shape(context.input(0), context.output(0), context.op.as<Crop2d>().borders);
  return own_kernel(context, [shape](const Buffers& buffers) {
    const std::byte* x = buffers.in<std::byte>(0);
    std::byte* y = buffers.out<std::byte>(0);
    const std::int64_t grain = std::max<std::int64_t>(1, 4 * element_grain / shape.inner_bytes);
    parallel_ranges(shape.images * shape.inner_rows, grain, [=](std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < end; ++row) {
        const std::int64_t from = row / shape.inner_rows * shape.outer_rows + shape.above + row % shape.inner_rows;
        std::memcpy(y + row * shape.inner_bytes, x + from * shape.outer_bytes + shape.left_bytes,
                    static_cast<std::size_t>(shape.inner_bytes));
      }
    });
  });
}

}  // namespace trainctl::cpu
