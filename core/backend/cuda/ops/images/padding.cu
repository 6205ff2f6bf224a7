// Adds borders of zeros to images, and removes them; each thread moves packs of channels.
#include "core/graph/ops/images/padding.h"

#include "core/backend/cuda/device/divisor.h"
#include "core/backend/cuda/device/pack.h"
#include "core/backend/cuda/kernels.h"

namespace trainctl::cuda {
namespace {

// Images with `rows` rows each, and `packs` packs in each row.
struct Packed {
  std::uint32_t rows, packs, total;
  Divisor by_rows, by_packs;

  Packed(const Shape& images, int width)
      : rows(static_cast<std::uint32_t>(images[1])),
        packs(static_cast<std::uint32_t>(images[2] * images[3] / width)),
        total(narrow(images.count() / width)),
        by_rows(rows),
        by_packs(packs) {}
  __device__ std::int64_t index(std::uint32_t image, std::uint32_t row, std::uint32_t pack) const {
    return (static_cast<std::int64_t>(image) * rows + row) * packs + pack;
  }
};

// The position of the image's first pack within its borders.
struct Corner {
  std::uint32_t row, pack;

  Corner(const Borders& borders, std::int64_t channels, int width)
      : row(static_cast<std::uint32_t>(borders.before[0])),
        pack(static_cast<std::uint32_t>(borders.before[1] * channels / width)) {}
};

template <class T, int width>
__global__ void pad(Packed outer, Packed inner, Corner corner, const T* __restrict__ x, T* __restrict__ y) {
  for (auto i = static_cast<std::uint32_t>(first_element()); i < outer.total; i += element_stride()) {
    const std::uint32_t line = outer.by_packs.quotient(i), image = outer.by_rows.quotient(line);
    const std::uint32_t row = outer.by_rows.remainder(line, image) - corner.row;  // wraps around above the image
    const std::uint32_t at = outer.by_packs.remainder(i, line) - corner.pack;
    Pack<T, width> pack;
    if (row < inner.rows && at < inner.packs) {
      pack = pack_at<width>(x + inner.index(image, row, at) * width);
    } else {
#pragma unroll
      for (int k = 0; k < width; ++k) pack.values[k] = store<T>(0.0f);
    }
    pack_at<width>(y + static_cast<std::int64_t>(i) * width) = pack;
  }
}

template <class T, int width>
__global__ void crop(Packed outer, Packed inner, Corner corner, const T* __restrict__ x, T* __restrict__ y) {
  for (auto i = static_cast<std::uint32_t>(first_element()); i < inner.total; i += element_stride()) {
    const std::uint32_t line = inner.by_packs.quotient(i), image = inner.by_rows.quotient(line);
    const std::uint32_t row = inner.by_rows.remainder(line, image) + corner.row;
    const std::uint32_t at = inner.by_packs.remainder(i, line) + corner.pack;
    pack_at<width>(y + static_cast<std::int64_t>(i) * width) = pack_at<width>(x + outer.index(image, row, at) * width);
  }
}

// Calls make(T{}, pack width, outer images, inner images, corner).
template <class Make>
Lowering with_images(const TensorType& outer, const TensorType& inner, const Borders& borders, const Make& make) {
  return with_packs(outer.dtype, outer.shape.back(), [&](auto type, auto pack) {
    constexpr int width = decltype(pack)::value;
    return make(type, pack, Packed(outer.shape, width), Packed(inner.shape, width),
                Corner(borders, outer.shape.back(), width));
  });
}

}  // namespace

Lowering lower_pad2d(const LowerContext& context) {
  return with_images(context.output(0), context.input(0), context.op.as<Pad2d>().borders,
                     [&](auto type, auto pack, const Packed& outer, const Packed& inner, const Corner& corner) {
                       using T = decltype(type);
                       constexpr int width = decltype(pack)::value;
                       return own_kernel(context, [=](const Buffers& p) {
                         launch(pad<T, width>, blocks_for(outer.total), block_threads, p.stream, outer, inner, corner,
                                p.in<T>(0), p.out<T>(0));
                       });
                     });
}

Lowering lower_crop2d(const LowerContext& context) {
  return with_images(context.input(0), context.output(0), context.op.as<Crop2d>().borders,
                     [&](auto type, auto pack, const Packed& outer, const Packed& inner, const Corner& corner) {
                       using T = decltype(type);
                       constexpr int width = decltype(pack)::value;
                       return own_kernel(context, [=](const Buffers& p) {
                         launch(crop<T, width>, blocks_for(inner.total), block_threads, p.stream, outer, inner, corner,
                                p.in<T>(0), p.out<T>(0));
                       });
                     });
}

}  // namespace trainctl::cuda
