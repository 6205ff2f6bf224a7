// Enlarges images, forward and backward; each thread computes a pack of channels. Gradients are gathered by input
// pixel, so that one thread computes each value and rounds it once.
#include "core/graph/ops/images/upsample2d.h"

#include "core/backend/cuda/kernels.h"
#include "core/backend/cuda/ops/images/pooling.h"

namespace trainctl::cuda {
namespace {

// Divides by twice the factor, as Enlarged::between() requires.
struct Half {
  Divisor by;

  __host__ __device__ std::int32_t operator()(std::int32_t number) const {
    return static_cast<std::int32_t>(by.quotient(static_cast<std::uint32_t>(number)));
  }
};

// One dimension of the images and of the enlarged images.
struct EnlargedAxis {
  Enlarged enlarged;
  int input, output;
  Divisor by_input, by_output;
  Half half;

  EnlargedAxis(std::int64_t size, std::int64_t factor)
      : enlarged{static_cast<std::int32_t>(size), static_cast<std::int32_t>(factor)},
        input(static_cast<int>(size)),
        output(static_cast<int>(size * factor)),
        by_input(size),
        by_output(size * factor),
        half{Divisor(2 * factor)} {}

  __device__ Between between(Interpolation how, int out) const { return enlarged.between(how, out, half); }
};

struct Geometry {
  EnlargedAxis rows, columns;
  std::int64_t channels;
  std::uint32_t inputs, outputs;  // number of packs
  Divisor by_packs;               // divides by the number of packs in a pixel

  Geometry(const Shape& x, const std::array<std::int64_t, 2>& factors, int width)
      : rows(x[1], factors[0]),
        columns(x[2], factors[1]),
        channels(x[3]),
        inputs(narrow(x.count() / width)),
        outputs(narrow(x[0] * rows.output * columns.output * (x[3] / width))),
        by_packs(x[3] / width) {}
};

template <class T, int width>
__global__ void repeat_pixels(Geometry g, const T* __restrict__ x, T* __restrict__ y) {
  for (auto i = static_cast<std::uint32_t>(first_element()); i < g.outputs; i += element_stride()) {
    const Spot at(i, width, g.by_packs, g.rows.by_output, g.columns.by_output);
    const int row = g.rows.between(Interpolation::nearest, at.row).first;
    const int column = g.columns.between(Interpolation::nearest, at.column).first;
    const std::int64_t offset = ((at.image * g.rows.input + row) * g.columns.input + column) * g.channels + at.channel;
    pack_at<width>(y + static_cast<std::int64_t>(i) * width) = pack_at<width>(x + offset);
  }
}

template <class T, int width>
__global__ void interpolate(Geometry g, const T* __restrict__ x, T* __restrict__ y) {
  for (auto i = static_cast<std::uint32_t>(first_element()); i < g.outputs; i += element_stride()) {
    const Spot at(i, width, g.by_packs, g.rows.by_output, g.columns.by_output);
    const Between down = g.rows.between(Interpolation::bilinear, at.row);
    const Between right = g.columns.between(Interpolation::bilinear, at.column);
    const auto pixel = [&](int row, int column) {
      const std::int64_t index = (at.image * g.rows.input + row) * g.columns.input + column;
      return pack_at<width>(x + index * g.channels + at.channel);
    };
    const Pack<T, width> above_left = pixel(down.first, right.first), above_right = pixel(down.first, right.second);
    const Pack<T, width> below_left = pixel(down.second, right.first), below_right = pixel(down.second, right.second);
    Pack<T, width> values;
#pragma unroll
    for (int k = 0; k < width; ++k) {
      const float high = load(above_left.values[k]) * (1 - right.part) + load(above_right.values[k]) * right.part;
      const float low = load(below_left.values[k]) * (1 - right.part) + load(below_right.values[k]) * right.part;
      values.values[k] = store<T>(high * (1 - down.part) + low * down.part);
    }
    pack_at<width>(y + static_cast<std::int64_t>(i) * width) = values;
  }
}

template <class T, int width>
__global__ void gather_gradients(Geometry g, Interpolation how, const T* __restrict__ dy, T* __restrict__ dx) {
  for (auto i = static_cast<std::uint32_t>(first_element()); i < g.inputs; i += element_stride()) {
    const Spot at(i, width, g.by_packs, g.rows.by_input, g.columns.by_input);
    const Readers down = g.rows.enlarged.readers(how, at.row), right = g.columns.enlarged.readers(how, at.column);
    float sums[width] = {};
    for (int row = down.first; row < down.end; ++row) {
      const float row_share = g.rows.between(how, row).share(at.row);
      for (int column = right.first; column < right.end; ++column) {
        const float share = row_share * g.columns.between(how, column).share(at.column);
        const std::int64_t index = (at.image * g.rows.output + row) * g.columns.output + column;
        const Pack<T, width> pack = pack_at<width>(dy + index * g.channels + at.channel);
#pragma unroll
        for (int k = 0; k < width; ++k) sums[k] += load(pack.values[k]) * share;
      }
    }
    Pack<T, width> values;
#pragma unroll
    for (int k = 0; k < width; ++k) values.values[k] = store<T>(sums[k]);
    pack_at<width>(dx + static_cast<std::int64_t>(i) * width) = values;
  }
}

}  // namespace

Lowering lower_upsample2d(const LowerContext& context) {
  const auto& def = context.op.as<Upsample2d>();
  const Shape& x = context.input(0).shape;
  return with_packs(context.input(0).dtype, x[3], [&](auto type, auto pack) {
    using T = decltype(type);
    constexpr int width = decltype(pack)::value;
    const Geometry g(x, def.factors, width);
    return own_kernel(context, [g, how = def.interpolation](const Buffers& p) {
      const auto kernel = how == Interpolation::nearest ? repeat_pixels<T, width> : interpolate<T, width>;
      launch(kernel, blocks_for(g.outputs), block_threads, p.stream, g, p.in<T>(0), p.out<T>(0));
    });
  });
}

Lowering lower_upsample2d_grad(const LowerContext& context) {
  const auto& def = context.op.as<Upsample2dGrad>();
  const Shape& x = context.output(0).shape;
  return with_packs(context.input(0).dtype, x[3], [&](auto type, auto pack) {
    using T = decltype(type);
    constexpr int width = decltype(pack)::value;
    const Geometry g(x, def.factors, width);
    return own_kernel(context, [g, how = def.interpolation](const Buffers& p) {
      launch(gather_gradients<T, width>, blocks_for(g.inputs), block_threads, p.stream, g, how, p.in<T>(0),
             p.out<T>(0));
    });
  });
}

}  // namespace trainctl::cuda
