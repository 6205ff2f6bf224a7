// Pooling over NHWC images, forward and backward. Gradients are gathered by input pixel, so that threads never meet and
// each value is rounded once.
#include <limits>

#include "core/backend/cpu/kernels.h"
#include "core/graph/ops/pooling.h"

namespace trainctl::cpu {
namespace {

// The rows (or columns) of a window that lie inside the image: [begin, end) of the window's index.
struct Inside {
  std::int64_t begin, end;
};
Inside inside(const Window& w, std::size_t axis, std::int64_t output, std::int64_t input_size) {
  const std::int64_t start = output * w.strides[axis] - w.padding_before[axis], step = w.dilation[axis];
  const std::int64_t begin = start < 0 ? (-start + step - 1) / step : 0;
  const std::int64_t end = std::min(w.size[axis], (input_size - start + step - 1) / step);
  return {std::min(begin, w.size[axis]), std::max(begin, end)};
}

struct PoolShape {
  Window window;
  std::int64_t n, h, w, c, out_h, out_w;

  PoolShape(const Window& win, const Shape& x)
      : window(win), n(x[0]), h(x[1]), w(x[2]), c(x[3]), out_h(win.output(0, x[1])), out_w(win.output(1, x[2])) {}

  std::int64_t row(std::int64_t output, std::int64_t index) const {
    return output * window.strides[0] - window.padding_before[0] + index * window.dilation[0];
  }
  std::int64_t column(std::int64_t output, std::int64_t index) const {
    return output * window.strides[1] - window.padding_before[1] + index * window.dilation[1];
  }
  // Calls visit(output row, window row) for every window that holds the input row; axis 1: columns.
  template <class Visit>
  TRAINCTL_INLINE void windows_of(std::size_t axis, std::int64_t position, std::int64_t outputs,
                                  const Visit& visit) const {
    for (std::int64_t index = 0; index < window.size[axis]; ++index) {
      const std::int64_t start = position + window.padding_before[axis] - index * window.dilation[axis];
      if (start < 0 || start % window.strides[axis] != 0) continue;
      const std::int64_t output = start / window.strides[axis];
      if (output < outputs) visit(output, index);
    }
  }
};

constexpr int tile = 64;

template <class T>
void max_pool(const PoolShape& s, const T* x, T* y, std::uint8_t* winners) {
  parallel_ranges(s.n * s.out_h, 1, [=, &s](std::int64_t begin, std::int64_t end) {
    simd([=, &s]() TRAINCTL_INLINE {
      for (std::int64_t line = begin; line < end; ++line) {
        const std::int64_t image = line / s.out_h, oh = line % s.out_h;
        const Inside rows = inside(s.window, 0, oh, s.h);
        for (std::int64_t ow = 0; ow < s.out_w; ++ow) {
          const Inside columns = inside(s.window, 1, ow, s.w);
          for (std::int64_t first = 0; first < s.c; first += tile) {
            const std::int64_t width = std::min<std::int64_t>(tile, s.c - first);
            float best[tile];
            std::int32_t winner[tile] = {};
            std::fill(best, best + tile, -std::numeric_limits<float>::infinity());
            for (std::int64_t i = rows.begin; i < rows.end; ++i) {
              for (std::int64_t j = columns.begin; j < columns.end; ++j) {
                const T* pixel = x + ((image * s.h + s.row(oh, i)) * s.w + s.column(ow, j)) * s.c + first;
                const auto index = static_cast<std::int32_t>(i * s.window.size[1] + j);
                const bool start = i == rows.begin && j == columns.begin;
#pragma omp simd
                for (std::int64_t k = 0; k < width; ++k) {
                  const float value = load(pixel[k]);
                  const bool wins = start || value > best[k] || value != value;  // NaN wins
                  best[k] = wins ? value : best[k];
                  winner[k] = wins ? index : winner[k];
                }
              }
            }
            const std::int64_t at = (line * s.out_w + ow) * s.c + first;
            for (std::int64_t k = 0; k < width; ++k) y[at + k] = store<T>(best[k]);
            if (winners == nullptr) continue;
            for (std::int64_t k = 0; k < width; ++k) winners[at + k] = static_cast<std::uint8_t>(winner[k]);
          }
        }
      }
    });
  });
}

template <class T>
void average_pool(const PoolShape& s, const T* x, T* y) {
  parallel_ranges(s.n * s.out_h, 1, [=, &s](std::int64_t begin, std::int64_t end) {
    simd([=, &s]() TRAINCTL_INLINE {
      for (std::int64_t line = begin; line < end; ++line) {
        const std::int64_t image = line / s.out_h, oh = line % s.out_h;
        const Inside rows = inside(s.window, 0, oh, s.h);
        for (std::int64_t ow = 0; ow < s.out_w; ++ow) {
          const Inside columns = inside(s.window, 1, ow, s.w);
          const auto count = static_cast<float>((rows.end - rows.begin) * (columns.end - columns.begin));
          const float scale = count > 0 ? 1.0f / count : 0.0f;
          for (std::int64_t first = 0; first < s.c; first += tile) {
            const std::int64_t width = std::min<std::int64_t>(tile, s.c - first);
            float sum[tile] = {};
            for (std::int64_t i = rows.begin; i < rows.end; ++i) {
              for (std::int64_t j = columns.begin; j < columns.end; ++j) {
                const T* pixel = x + ((image * s.h + s.row(oh, i)) * s.w + s.column(ow, j)) * s.c + first;
#pragma omp simd
                for (std::int64_t k = 0; k < width; ++k) sum[k] += load(pixel[k]);
              }
            }
            T* target = y + (line * s.out_w + ow) * s.c + first;
#pragma omp simd
            for (std::int64_t k = 0; k < width; ++k) target[k] = store<T>(sum[k] * scale);
          }
        }
      }
    });
  });
}

// dx of one input line; share(output offset, window index, channel, oh, ow) is what an output hands back to this pixel.
template <class T, class Share>
void pool_gradient(const PoolShape& s, T* dx, const Share& share) {
  parallel_ranges(s.n * s.h, 1, [=, &s](std::int64_t begin, std::int64_t end) {
    simd([=, &s]() TRAINCTL_INLINE {
      for (std::int64_t line = begin; line < end; ++line) {
        const std::int64_t image = line / s.h, row = line % s.h;
        for (std::int64_t column = 0; column < s.w; ++column) {
          for (std::int64_t first = 0; first < s.c; first += tile) {
            const std::int64_t width = std::min<std::int64_t>(tile, s.c - first);
            float sum[tile] = {};
            s.windows_of(0, row, s.out_h, [&](std::int64_t oh, std::int64_t i) TRAINCTL_INLINE {
              s.windows_of(1, column, s.out_w, [&](std::int64_t ow, std::int64_t j) TRAINCTL_INLINE {
                const std::int64_t at = ((image * s.out_h + oh) * s.out_w + ow) * s.c + first;
                const auto term = share(at, static_cast<std::int32_t>(i * s.window.size[1] + j), oh, ow);
#pragma omp simd
                for (std::int64_t k = 0; k < width; ++k) sum[k] += term(k);
              });
            });
            T* target = dx + (line * s.w + column) * s.c + first;
#pragma omp simd
            for (std::int64_t k = 0; k < width; ++k) target[k] = store<T>(sum[k]);
          }
        }
      }
    });
  });
}

}  // namespace

Lowering lower_pool2d(const LowerContext& context) {
  const auto& def = context.op.as<Pool2d>();
  const PoolShape s(def.window, context.input(0).shape);
  return with_type(context.input(0).dtype, [&](auto type) {
    using T = decltype(type);
    return own_kernel(context, [s, mode = def.mode, training = def.training](const Places& places) {
      if (mode == PoolMode::average) return average_pool(s, places.in<T>(0), places.out<T>(0));
      max_pool(s, places.in<T>(0), places.out<T>(0), training ? places.out<std::uint8_t>(1) : nullptr);
    });
  });
}

Lowering lower_pool2d_grad(const LowerContext& context) {
  const auto& def = context.op.as<Pool2dGrad>();
  const PoolShape s(def.window, def.input);
  return with_type(context.input(0).dtype, [&](auto type) {
    using T = decltype(type);
    return own_kernel(context, [s, mode = def.mode](const Places& places) {
      const T* dy = places.in<T>(0);
      if (mode == PoolMode::max) {
        const std::uint8_t* winners = places.in<std::uint8_t>(1);
        return pool_gradient(
            s, places.out<T>(0), [=](std::int64_t at, std::int32_t index, std::int64_t, std::int64_t) TRAINCTL_INLINE {
              return [=](std::int64_t k) TRAINCTL_INLINE { return winners[at + k] == index ? load(dy[at + k]) : 0.0f; };
            });
      }
      pool_gradient(s, places.out<T>(0),
                    [=, &s](std::int64_t at, std::int32_t, std::int64_t oh, std::int64_t ow) TRAINCTL_INLINE {
                      const Inside rows = inside(s.window, 0, oh, s.h);
                      const Inside columns = inside(s.window, 1, ow, s.w);
                      const float scale =
                          1.0f / static_cast<float>((rows.end - rows.begin) * (columns.end - columns.begin));
                      return [=](std::int64_t k) TRAINCTL_INLINE { return load(dy[at + k]) * scale; };
                    });
    });
  });
}

Lowering lower_global_average_pool2d(const LowerContext& context) {
  const Shape& x = context.input(0).shape;
  const std::int64_t images = x[0], pixels = x[1] * x[2], channels = x[3];
  return with_type(context.input(0).dtype, [&](auto type) {
    using T = decltype(type);
    return own_kernel(context, [=](const Places& places) {
      const T* source = places.in<T>(0);
      T* target = places.out<T>(0);
      parallel_ranges(images, 1, [=](std::int64_t begin, std::int64_t end) {
        simd([=]() TRAINCTL_INLINE {
          const float scale = 1.0f / static_cast<float>(pixels);
          for (std::int64_t image = begin; image < end; ++image) {
            for (std::int64_t first = 0; first < channels; first += tile) {
              const std::int64_t width = std::min<std::int64_t>(tile, channels - first);
              float sum[tile] = {};
              for (std::int64_t pixel = 0; pixel < pixels; ++pixel) {
                const T* row = source + (image * pixels + pixel) * channels + first;
#pragma omp simd
                for (std::int64_t k = 0; k < width; ++k) sum[k] += load(row[k]);
              }
              for (std::int64_t k = 0; k < width; ++k) {
                target[image * channels + first + k] = store<T>(sum[k] * scale);
              }
            }
          }
        });
      });
    });
  });
}

Lowering lower_global_average_pool2d_grad(const LowerContext& context) {
  const Shape& x = context.op.as<GlobalAveragePool2dGrad>().input;
  const std::int64_t images = x[0], pixels = x[1] * x[2], channels = x[3];
  return with_type(context.input(0).dtype, [&](auto type) {
    using T = decltype(type);
    return own_kernel(context, [=](const Places& places) {
      const T* dy = places.in<T>(0);
      T* dx = places.out<T>(0);
      parallel_ranges(images, 1, [=](std::int64_t begin, std::int64_t end) {
        simd([=]() TRAINCTL_INLINE {
          const float scale = 1.0f / static_cast<float>(pixels);
          for (std::int64_t row = begin * pixels; row < end * pixels; ++row) {
            const T* source = dy + row / pixels * channels;
#pragma omp simd
            for (std::int64_t k = 0; k < channels; ++k) dx[row * channels + k] = store<T>(load(source[k]) * scale);
          }
        });
      });
    });
  });
}

}  // namespace trainctl::cpu
