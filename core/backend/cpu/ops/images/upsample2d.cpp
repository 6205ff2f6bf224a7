// Upsampling of images, forward and backward. The gradient of each input pixel is gathered from the output pixels that
// read it, so that no two threads write the same value and each value is rounded once.
#include "core/graph/ops/images/upsample2d.h"

#include <cstring>
#include <vector>

#include "core/backend/cpu/kernels.h"
#include "core/backend/cpu/simd/tiles.h"

namespace trainctl::cpu {
namespace {

// For each row (or column) of the output its position between input rows, and for each row of the input the output rows
// that read it.
struct Axis {
  std::vector<Between> positions;
  std::vector<Readers> readers;

  Axis(Interpolation how, std::int64_t size, std::int64_t factor) {
    const Enlarged axis{static_cast<std::int32_t>(size), static_cast<std::int32_t>(factor)};
    const auto half = [&](std::int32_t n) { return n / (2 * axis.factor); };
    for (std::int32_t row = 0; row < axis.size * axis.factor; ++row) positions.push_back(axis.between(how, row, half));
    for (std::int32_t row = 0; row < axis.size; ++row) readers.push_back(axis.readers(how, row));
  }
};

struct Upsampling {
  std::int64_t images, h, w, c, out_h, out_w, rows_each;
  Axis rows, columns;

  Upsampling(Interpolation how, const std::array<std::int64_t, 2>& factors, const Shape& x)
      : images(x[0]),
        h(x[1]),
        w(x[2]),
        c(x[3]),
        out_h(x[1] * factors[0]),
        out_w(x[2] * factors[1]),
        rows_each(factors[0]),
        rows(how, x[1], factors[0]),
        columns(how, x[2], factors[1]) {}
};

// The number of rows of `values` values each that a thread processes together.
std::int64_t grain_of(std::int64_t values) { return std::max<std::int64_t>(1, element_grain / values); }

// Nearest-neighbour upsampling: writes a row of the output, and copies it to the rows that repeat it.
void repeat_pixels(const Upsampling& g, std::int64_t element, const std::byte* x, std::byte* y) {
  const std::int64_t pixel = g.c * element, out_row = g.out_w * pixel, each = g.out_w / g.w;
  parallel_ranges(g.images * g.h, grain_of(g.rows_each * g.out_w * g.c), [=, &g](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      std::byte* first = y + row * g.rows_each * out_row;
      for (std::int64_t column = 0; column < g.w; ++column) {
        const std::byte* from = x + (row * g.w + column) * pixel;
        for (std::int64_t k = 0; k < each; ++k) {
          std::memcpy(first + (column * each + k) * pixel, from, static_cast<std::size_t>(pixel));
        }
      }
      for (std::int64_t k = 1; k < g.rows_each; ++k) {
        std::memcpy(first + k * out_row, first, static_cast<std::size_t>(out_row));
      }
    }
  });
}

// Bilinear upsampling.
template <class T>
void interpolate(const Upsampling& g, const T* x, T* y) {
  parallel_ranges(g.images * g.out_h, grain_of(g.out_w * g.c), [=, &g](std::int64_t begin, std::int64_t end) {
    simd([=, &g]() TRAINCTL_INLINE {
      for (std::int64_t line = begin; line < end; ++line) {
        const Between down = g.rows.positions[static_cast<std::size_t>(line % g.out_h)];
        const T* image = x + line / g.out_h * g.h * g.w * g.c;
        for (std::int64_t column = 0; column < g.out_w; ++column) {
          const Between right = g.columns.positions[static_cast<std::size_t>(column)];
          const T *above = image + down.first * g.w * g.c, *below = image + down.second * g.w * g.c;
          const T *above_left = above + right.first * g.c, *above_right = above + right.second * g.c;
          const T *below_left = below + right.first * g.c, *below_right = below + right.second * g.c;
          T* target = y + (line * g.out_w + column) * g.c;
          const std::int64_t channels = g.c;
#pragma omp simd
          for (std::int64_t k = 0; k < channels; ++k) {
            const float high = load(above_left[k]) * (1 - right.part) + load(above_right[k]) * right.part;
            const float low = load(below_left[k]) * (1 - right.part) + load(below_right[k]) * right.part;
            target[k] = store<T>(high * (1 - down.part) + low * down.part);
          }
        }
      }
    });
  });
}

// Computes dx from the output pixels that read each input pixel.
template <class T>
void gather_gradients(const Upsampling& g, const T* dy, T* dx) {
  parallel_ranges(g.images * g.h, grain_of(g.rows_each * g.out_w * g.c), [=, &g](std::int64_t begin, std::int64_t end) {
    simd([=, &g]() TRAINCTL_INLINE {
      for (std::int64_t line = begin; line < end; ++line) {
        const auto row = static_cast<std::int32_t>(line % g.h);
        const Readers down = g.rows.readers[static_cast<std::size_t>(row)];
        const T* image = dy + line / g.h * g.out_h * g.out_w * g.c;
        for (std::int32_t column = 0; column < g.w; ++column) {
          const Readers right = g.columns.readers[static_cast<std::size_t>(column)];
          each_tile(g.c, [&](std::int64_t first, auto width) TRAINCTL_INLINE {
            float sum[width()] = {};
            for (std::int32_t i = down.first; i < down.end; ++i) {
              const float row_share = g.rows.positions[static_cast<std::size_t>(i)].share(row);
              for (std::int32_t j = right.first; j < right.end; ++j) {
                const float share = row_share * g.columns.positions[static_cast<std::size_t>(j)].share(column);
                const T* pixel = image + (i * g.out_w + j) * g.c + first;
#pragma omp simd
                for (int k = 0; k < width(); ++k) sum[k] += load(pixel[k]) * share;
              }
            }
            T* target = dx + (line * g.w + column) * g.c + first;
#pragma omp simd
            for (int k = 0; k < width(); ++k) target[k] = store<T>(sum[k]);
          });
        }
      }
    });
  });
}

}  // namespace

Lowering lower_upsample2d(const LowerContext& context) {
  const auto& def = context.op.as<Upsample2d>();
  const Upsampling g(def.interpolation, def.factors, context.input(0).shape);
  return with_type(context.input(0).dtype, [&](auto type) {
    using T = decltype(type);
    return own_kernel(context, [g, how = def.interpolation](const Buffers& buffers) {
      if (how == Interpolation::bilinear) return interpolate(g, buffers.in<T>(0), buffers.out<T>(0));
      repeat_pixels(g, sizeof(T), buffers.in<std::byte>(0), buffers.out<std::byte>(0));
    });
  });
}

Lowering lower_upsample2d_grad(const LowerContext& context) {
  const auto& def = context.op.as<Upsample2dGrad>();
  const Upsampling g(def.interpolation, def.factors, context.output(0).shape);
  return with_type(context.input(0).dtype, [&](auto type) {
    using T = decltype(type);
    return own_kernel(context,
                      [g](const Buffers& buffers) { gather_gradients(g, buffers.in<T>(0), buffers.out<T>(0)); });
  });
}

}  // namespace trainctl::cpu
