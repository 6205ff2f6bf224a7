// Ops that move values without computing: concatenation, splits along the last dimension, and changes of dtype.
#include "core/graph/ops/reshaping/shaping.h"
#include "core/graph/ops/whole_batch.h"

#include "core/backend/cuda/device/pack.h"
#include "core/backend/cuda/device/transpose.h"
#include "core/backend/cuda/kernels.h"
#include "core/graph/ops/reshaping/columns.h"

namespace trainctl::cuda {
namespace {

// Each thread converts four neighbouring values together if both sides are aligned; parameters may be unaligned.
template <class From, class To>
__global__ void convert(const From* __restrict__ from, To* __restrict__ to, std::int64_t count) {
  constexpr int width = 4;
  const std::int64_t whole = is_aligned(from) && is_aligned(to) ? count / width : 0;
  for (std::int64_t i = first_element(); i < whole; i += element_stride()) {
    const Pack<From, width> values = pack_at<width>(from + i * width);
    Pack<To, width> converted;
#pragma unroll
    for (int k = 0; k < width; ++k) converted.values[k] = store<To>(load(values.values[k]));
    pack_at<width>(to + i * width) = converted;
  }
  for (std::int64_t i = whole * width + first_element(); i < count; i += element_stride()) {
    to[i] = store<To>(load(from[i]));
  }
}

Lowering lower_conversion(const LowerContext& context, DType from, DType to) {
  const std::int64_t count = context.input(0).shape.count();
  return own_kernel(context, [=](const Buffers& p) {
    with_type(from, [&](auto source) {
      with_type(to, [&](auto target) {
        using From = decltype(source);
        using To = decltype(target);
        launch(convert<From, To>, blocks_for(count, 4), block_threads, p.stream, p.in<From>(0), p.out<To>(0), count);
      });
    });
  });
}

// Copies between a wide tensor and its parts, which are side by side along the last dimension.
struct Columns {
  std::int64_t rows = 0, row_bytes = 0;
  std::vector<std::int64_t> part_bytes;

  template <class WidePart>
  void copy(const WidePart& copy_part) const {
    std::int64_t at = 0;
    for (std::size_t i = 0; i < part_bytes.size(); ++i) {
      copy_part(i, at, static_cast<std::size_t>(part_bytes[i]));
      at += part_bytes[i];
    }
  }
};

Columns columns_of(const TensorType& wide, const std::vector<std::int64_t>& widths) {
  const std::int64_t size = size_of(wide.dtype);
  Columns columns{wide.shape.count() / wide.shape.back(), wide.shape.back() * size, {}};
  for (std::int64_t width : widths) columns.part_bytes.push_back(width * size);
  return columns;
}

}  // namespace

Lowering lower_concatenate(const LowerContext& context) {
  std::vector<std::int64_t> widths;
  for (std::size_t i = 0; i < context.op.inputs.size(); ++i) widths.push_back(context.input(i).shape.back());
  return own_kernel(context, [columns = columns_of(context.output(0), widths)](const Buffers& p) {
    columns.copy([&](std::size_t i, std::int64_t at, std::size_t width) {
      check(cudaMemcpy2DAsync(p.out<std::byte>(0) + at, static_cast<std::size_t>(columns.row_bytes), p.in<void>(i),
                              width, width, static_cast<std::size_t>(columns.rows), cudaMemcpyDeviceToDevice, p.stream),
            "cudaMemcpy2DAsync");
    });
  });
}

Lowering lower_split(const LowerContext& context) {
  return own_kernel(context, [columns = columns_of(context.input(0), context.op.as<Split>().sizes)](const Buffers& p) {
    columns.copy([&](std::size_t i, std::int64_t at, std::size_t width) {
      check(
          cudaMemcpy2DAsync(p.out<void>(i), width, p.in<std::byte>(0) + at, static_cast<std::size_t>(columns.row_bytes),
                            width, static_cast<std::size_t>(columns.rows), cudaMemcpyDeviceToDevice, p.stream),
          "cudaMemcpy2DAsync");
    });
  });
}

Lowering lower_take_columns(const LowerContext& context) {
  const TensorType &whole = context.input(0), &part = context.output(0);
  const auto rows = static_cast<std::size_t>(whole.shape.rows());
  const auto row_bytes = static_cast<std::size_t>(whole.shape.back() * size_of(whole.dtype));
  const auto width = static_cast<std::size_t>(part.shape.back() * size_of(part.dtype));
  const std::int64_t column = context.op.as<TakeColumns>().shard.first_of(whole.shape.back());
  const auto first = static_cast<std::size_t>(column * size_of(whole.dtype));
  return own_kernel(context, [=](const Buffers& p) {
    check(cudaMemcpy2DAsync(p.out<void>(0), width, p.in<std::byte>(0) + first, row_bytes, width, rows,
                            cudaMemcpyDeviceToDevice, p.stream),
          "cudaMemcpy2DAsync");
  });
}

Lowering lower_take_samples(const LowerContext& context) {
  const SampleShares& shares = context.op.as<TakeSamples>().shares;
  const TensorType& y = context.output(0);
  const std::int64_t first = shares.first_of(shares.own) * (y.bytes() / y.shape[0]);
  return own_kernel(context, [first, bytes = static_cast<std::size_t>(y.bytes())](const Buffers& p) {
    check(cudaMemcpyAsync(p.out<void>(0), p.in<std::byte>(0) + first, bytes, cudaMemcpyDeviceToDevice, p.stream),
          "cudaMemcpyAsync");
  });
}

Lowering lower_cast(const LowerContext& context) {
  return lower_conversion(context, context.input(0).dtype, context.op.as<Cast>().to);
}

// Writes compute copies: in another dtype, and kernels of convolutions also as [out, height, width, in / groups].
Lowering lower_reorder(const LowerContext& context) {
  const Layout &from = context.inputs[0], &to = context.op.as<Reorder>().to;
  Lowering lowering;
  if (to.format.empty()) {
    require(from.format.empty(), "a tensor is reordered that is not a parameter in its logical layout");
    lowering = lower_conversion(context, from.dtype, to.dtype);
  } else {
    require(to.format == "ohwi" && from.format.empty() && from.dtype == DType::float32,
            "a kernel is reordered from or to a layout that is not supported");
    const Shape& kernel = context.input(0).shape;
    lowering = own_kernel(
        context, [rows = kernel.count() / kernel.back(), columns = kernel.back(), dtype = to.dtype](const Buffers& p) {
          transpose(DType::float32, p.in<void>(0), rows, columns, dtype, p.out<void>(0), false, p.stream);
        });
  }
  lowering.outputs[0] = to;
  return lowering;
}

}  // namespace trainctl::cuda
