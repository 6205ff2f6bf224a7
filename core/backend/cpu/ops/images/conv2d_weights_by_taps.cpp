// The gradient of a convolution with respect to its kernel, tap by tap.
#include "core/backend/cpu/ops/images/conv2d_weights_by_taps.h"

#include <algorithm>

#include "core/backend/cpu/simd/parallel.h"
#include "core/backend/cpu/simd/product.h"
#include "core/backend/cpu/simd/simd.h"
#include "core/base/format.h"

namespace trainctl::cpu {
namespace {

constexpr std::int64_t panel_columns = 64, panel_rows = 128;  // a panel of dy fits into the first cache
constexpr std::int64_t block_rows = 1024;                     // rows of x that are copied at a time
// Copied rows have some more values, so that those of a column do not all fall into the same sets of the cache.
constexpr std::int64_t gap = 16;

}  // namespace

bool Conv2dWeightsByTaps::computes(const Shape& y, std::int64_t groups, DType dtype) {
  constexpr std::int64_t multiple = 16;  // of the columns of a MatrixProduct
  return dtype == DType::float32 && groups == 1 && y.back() % multiple == 0 &&
         instruction_set() != InstructionSet::baseline;
}

std::string Conv2dWeightsByTaps::name() { return format("own:taps:{}", name_of(instruction_set())); }

Conv2dWeightsByTaps::Conv2dWeightsByTaps(const Window& window, const Shape& x, const Shape& y, int threads)
    : images_(x[0]),
      in_(x[3]),
      out_(y[3]),
      threads_(threads),
      in_rows_(x[1]),
      in_columns_(x[2]),
      out_rows_(y[1]),
      out_columns_(y[2]),
      strides_(window.strides) {
  for (std::int64_t row = 0; row < window.size[0]; ++row) {
    for (std::int64_t column = 0; column < window.size[1]; ++column) {
      const Range rows = range(x, y, 0, row * window.dilation[0] - window.padding_before[0]);
      const Range columns = range(x, y, 1, column * window.dilation[1] - window.padding_before[1]);
      taps_.push_back({rows, columns, images_ * rows.count * columns.count});
    }
  }
  direct_ = window == Window{} && x[1] == y[1] && x[2] == y[2];
}

Conv2dWeightsByTaps::Range Conv2dWeightsByTaps::range(const Shape& x, const Shape& y, std::size_t axis,
                                                      std::int64_t offset) const {
  const std::int64_t stride = strides_[axis], in = x[axis + 1], out = y[axis + 1];
  const std::int64_t first = offset < 0 ? (-offset + stride - 1) / stride : 0;
  const std::int64_t end = offset < in ? std::min(out, (in - 1 - offset) / stride + 1) : 0;
  return {first, std::max<std::int64_t>(0, end - first), first * stride + offset};
}

std::int64_t Conv2dWeightsByTaps::workspace_bytes() const {
  const std::int64_t copied = direct_ ? 0 : block_rows * (in_ + gap);
  return (copied + threads_ * panel_rows * panel_columns) * size_of(DType::float32);
}

template <class Visit>
void Conv2dWeightsByTaps::each_position(const Tap& tap, std::int64_t first, std::int64_t count,
                                        const Visit& visit) const {
  std::int64_t column = first % tap.columns.count, row = first / tap.columns.count % tap.rows.count;
  std::int64_t image = first / (tap.columns.count * tap.rows.count);
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t in_row = tap.rows.in_first + row * strides_[0];
    const std::int64_t in_column = tap.columns.in_first + column * strides_[1];
    visit(i, (image * in_rows_ + in_row) * in_columns_ + in_column,
          (image * out_rows_ + tap.rows.first + row) * out_columns_ + tap.columns.first + column);
    if (++column < tap.columns.count) continue;
    column = 0;
    if (++row < tap.rows.count) continue;
    row = 0;
    ++image;
  }
}

void Conv2dWeightsByTaps::copy_rows(const Tap& tap, std::int64_t first, std::int64_t count, const float* x,
                                    float* copied) const {
  parallel_ranges(count, std::max<std::int64_t>(1, element_grain / in_), [&](std::int64_t begin, std::int64_t end) {
    each_position(tap, first + begin, end - begin, [&](std::int64_t i, std::int64_t in_row, std::int64_t) {
      std::copy_n(x + in_row * in_, in_, copied + (begin + i) * (in_ + gap));
    });
  });
}

void Conv2dWeightsByTaps::multiply_panel(const Block& block, std::int64_t column, std::int64_t from, std::int64_t to,
                                         const float* dy, bool add, float* dkernel, float* panel) const {
  const std::int64_t columns = std::min(panel_columns, out_ - column);
  for (std::int64_t k = 0; k < block.count; k += panel_rows) {
    const std::int64_t depth = std::min(panel_rows, block.count - k);
    each_position(block.tap, block.first + k, depth, [&](std::int64_t i, std::int64_t, std::int64_t out_row) {
      std::copy_n(dy + out_row * out_ + column, columns, panel + i * panel_columns);
    });
    multiply({.a = block.rows + k * block.step + from,
              .a_row = 1,
              .a_step = block.step,
              .b = panel,
              .b_step = panel_columns,
              .c = dkernel + from * out_ + column,
              .c_row = out_,
              .rows = to - from,
              .columns = columns,
              .depth = depth,
              .add = add || k > 0});
  }
}

void Conv2dWeightsByTaps::multiply_block(const Block& block, const float* dy, bool add, float* dkernel,
                                         float* panels) const {
  const std::int64_t columns = (out_ + panel_columns - 1) / panel_columns;
  const std::int64_t parts = std::min(in_, (threads_ + columns - 1) / columns), tasks = columns * parts;
  parallel_ranges(threads_, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t share = begin; share < end; ++share) {
      for (std::int64_t task = tasks * share / threads_; task < tasks * (share + 1) / threads_; ++task) {
        const std::int64_t part = task % parts;
        multiply_panel(block, task / parts * panel_columns, in_ * part / parts, in_ * (part + 1) / parts, dy, add,
                       dkernel, panels + share * panel_rows * panel_columns);
      }
    }
  });
}

void Conv2dWeightsByTaps::run(const float* x, const float* dy, bool accumulate, float* dkernel,
                              float* workspace) const {
  float* const panels = workspace;
  float* const copied = workspace + threads_ * panel_rows * panel_columns;
  for (const Tap& tap : taps_) {
    if (tap.positions == 0 && !accumulate) std::fill_n(dkernel, in_ * out_, 0.0f);
    for (std::int64_t first = 0; first < tap.positions; first += block_rows) {
      const std::int64_t count = std::min(block_rows, tap.positions - first);
      if (!direct_) copy_rows(tap, first, count, x, copied);
      const Block block{tap, first, count, direct_ ? x + first * in_ : copied, direct_ ? in_ : in_ + gap};
      multiply_block(block, dy, accumulate || first > 0, dkernel, panels);
    }
    dkernel += in_ * out_;
  }
}

}  // namespace trainctl::cpu
