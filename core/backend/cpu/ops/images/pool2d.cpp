// Pooling over NHWC images, forward and backward. The gradient of each input pixel is gathered from the windows that
// hold the pixel, so that no two threads write the same value and each value is rounded once.
#include <array>
#include <limits>
#include <vector>

#include "core/backend/cpu/kernels.h"
#include "core/backend/cpu/simd/tiles.h"
#include "core/graph/ops/images/pool2d.h"

namespace trainctl::cpu {
namespace {

// The rows (or columns) of a window that are inside the image: indices [begin, end) within the window.
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
};

// For each row (or column) of the input, the windows that hold it: the row (or column) of the window's output, and the
// index within the window.
class Holders {
 public:
  struct Holder {
    std::int64_t output, index;
  };

  Holders(const Window& w, std::size_t axis, std::int64_t positions, std::int64_t outputs) {
    for (std::int64_t position = 0; position < positions; ++position) {
      first_.push_back(holders_.size());
      for (std::int64_t index = 0; index < w.size[axis]; ++index) {
        const std::int64_t start = position + w.padding_before[axis] - index * w.dilation[axis];
        if (start < 0 || start % w.strides[axis] != 0 || start / w.strides[axis] >= outputs) continue;
        holders_.push_back({start / w.strides[axis], index});
      }
    }
    first_.push_back(holders_.size());
  }
  TRAINCTL_INLINE const Holder* begin(std::int64_t position) const {
    return holders_.data() + first_[static_cast<std::size_t>(position)];
  }
  TRAINCTL_INLINE const Holder* end(std::int64_t position) const { return begin(position + 1); }

 private:
  std::vector<Holder> holders_;
  std::vector<std::size_t> first_;  // index of each position's first holder, then the number of holders
};

template <class T>
void max_pool(const PoolShape& s, bool relu, const T* x, T* y, std::uint8_t* winners) {
  parallel_ranges(s.n * s.out_h, 1, [=, &s](std::int64_t begin, std::int64_t end) {
    simd([=, &s]() TRAINCTL_INLINE {
      for (std::int64_t line = begin; line < end; ++line) {
        const std::int64_t image = line / s.out_h, oh = line % s.out_h;
        const Inside rows = inside(s.window, 0, oh, s.h);
        for (std::int64_t ow = 0; ow < s.out_w; ++ow) {
          const Inside columns = inside(s.window, 1, ow, s.w);
          const auto start = static_cast<std::int32_t>(rows.begin * s.window.size[1] + columns.begin);
          each_tile(s.c, [&](std::int64_t first, auto width) TRAINCTL_INLINE {
            float best[width()];
            std::int32_t winner[width()];
            for (int k = 0; k < width(); ++k) {
              best[k] = -std::numeric_limits<float>::infinity();
              winner[k] = start;
            }
            for (std::int64_t i = rows.begin; i < rows.end; ++i) {
              for (std::int64_t j = columns.begin; j < columns.end; ++j) {
                const T* pixel = x + ((image * s.h + s.row(oh, i)) * s.w + s.column(ow, j)) * s.c + first;
                const auto index = static_cast<std::int32_t>(i * s.window.size[1] + j);
#pragma omp simd
                for (int k = 0; k < width(); ++k) {
                  const float value = load(pixel[k]), before = best[k];
                  const std::int32_t loses = value <= before || before != before ? -1 : 0;  // NaN wins
                  best[k] = loses != 0 ? before : value;
                  winner[k] = (winner[k] & loses) | (index & ~loses);
                }
              }
            }
            if (relu) {
#pragma omp simd
              for (int k = 0; k < width(); ++k) {
                const bool positive = best[k] > 0 || best[k] != best[k];  // NaN stays NaN
                best[k] = positive ? best[k] : 0.0f;
                winner[k] = positive ? winner[k] : Pool2d::no_winner;
              }
            }
            const std::int64_t offset = (line * s.out_w + ow) * s.c + first;
#pragma omp simd
            for (int k = 0; k < width(); ++k) y[offset + k] = store<T>(best[k]);
            if (winners == nullptr) return;
            // A local copy of the pointer, since stores of bytes may alias the lambda's captures.
            std::uint8_t* indices = winners + offset;
#pragma omp simd
            for (int k = 0; k < width(); ++k) indices[k] = static_cast<std::uint8_t>(winner[k]);
          });
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
          each_tile(s.c, [&](std::int64_t first, auto width) TRAINCTL_INLINE {
            float sum[width()] = {};
            for (std::int64_t i = rows.begin; i < rows.end; ++i) {
              for (std::int64_t j = columns.begin; j < columns.end; ++j) {
                const T* pixel = x + ((image * s.h + s.row(oh, i)) * s.w + s.column(ow, j)) * s.c + first;
#pragma omp simd
                for (int k = 0; k < width(); ++k) sum[k] += load(pixel[k]);
              }
            }
            T* target = y + (line * s.out_w + ow) * s.c + first;
#pragma omp simd
            for (int k = 0; k < width(); ++k) target[k] = store<T>(sum[k] * scale);
          });
        }
      }
    });
  });
}

// Computes dx pixel by pixel. share(output offset, index within the window, oh, ow) returns a function of the channel:
// the fraction of an output's gradient that goes to the pixel.
template <class T, class Share>
void pool_gradient(const PoolShape& s, const Holders& by_row, const Holders& by_column, T* dx, const Share& share) {
  parallel_ranges(s.n * s.h, 1, [=, &s, &by_row, &by_column](std::int64_t begin, std::int64_t end) {
    simd([=, &s, &by_row, &by_column]() TRAINCTL_INLINE {
      for (std::int64_t line = begin; line < end; ++line) {
        const std::int64_t image = line / s.h, row = line % s.h;
        for (std::int64_t column = 0; column < s.w; ++column) {
          each_tile(s.c, [&](std::int64_t first, auto width) TRAINCTL_INLINE {
            float sum[width()] = {};
            for (const auto* r = by_row.begin(row); r != by_row.end(row); ++r) {
              for (const auto* c = by_column.begin(column); c != by_column.end(column); ++c) {
                const std::int64_t offset = ((image * s.out_h + r->output) * s.out_w + c->output) * s.c + first;
                const auto index = static_cast<std::int32_t>(r->index * s.window.size[1] + c->index);
                const auto term = share(offset, index, r->output, c->output);
#pragma omp simd
                for (int k = 0; k < width(); ++k) sum[k] += term(k);
              }
            }
            T* target = dx + (line * s.w + column) * s.c + first;
#pragma omp simd
            for (int k = 0; k < width(); ++k) target[k] = store<T>(sum[k]);
          });
        }
      }
    });
  });
}

// Whether no two windows share a pixel.
bool windows_are_apart(const Window& w) {
  return w.dilation == std::array<std::int64_t, 2>{1, 1} && w.strides[0] >= w.size[0] && w.strides[1] >= w.size[1];
}

// Computes dx of max pooling with windows that do not overlap: each output's gradient is written to the pixels of its
// window, which is faster than gathering it for each pixel.
template <class T>
void max_pool_gradient_apart(const PoolShape& s, const T* dy, const std::uint8_t* winners, T* dx) {
  const std::int64_t image_values = s.h * s.w * s.c;
  const bool gaps = s.out_h * s.window.size[0] != s.h || s.out_w * s.window.size[1] != s.w;
  parallel_ranges(s.n, 1, [=, &s](std::int64_t begin, std::int64_t end) {
    simd([=, &s]() TRAINCTL_INLINE {
      for (std::int64_t image = begin; image < end; ++image) {
        if (gaps) std::fill_n(dx + image * image_values, image_values, T{});
        for (std::int64_t pixel = 0; pixel < s.out_h * s.out_w; ++pixel) {
          const std::int64_t oh = pixel / s.out_w, ow = pixel % s.out_w;
          const std::int64_t source = (image * s.out_h * s.out_w + pixel) * s.c;
          for (std::int64_t i = 0; i < s.window.size[0]; ++i) {
            for (std::int64_t j = 0; j < s.window.size[1]; ++j) {
              const std::int64_t row = s.row(oh, i), column = s.column(ow, j);
              if (row < 0 || row >= s.h || column < 0 || column >= s.w) continue;
              const auto index = static_cast<std::int32_t>(i * s.window.size[1] + j);
              T* target = dx + ((image * s.h + row) * s.w + column) * s.c;
#pragma omp simd
              for (std::int64_t k = 0; k < s.c; ++k) {
                const float value = load(dy[source + k]);
                target[k] = store<T>(winners[source + k] == index ? value : 0.0f);
              }
            }
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
    return own_kernel(context, [s, mode = def.mode, training = def.training, relu = def.relu](const Buffers& buffers) {
      if (mode == PoolMode::average) return average_pool(s, buffers.in<T>(0), buffers.out<T>(0));
      max_pool(s, relu, buffers.in<T>(0), buffers.out<T>(0), training ? buffers.out<std::uint8_t>(1) : nullptr);
    });
  });
}

Lowering lower_pool2d_grad(const LowerContext& context) {
  const auto& def = context.op.as<Pool2dGrad>();
  const PoolShape s(def.window, def.input);
  const Holders rows(s.window, 0, s.h, s.out_h), columns(s.window, 1, s.w, s.out_w);
  return with_type(context.input(0).dtype, [&](auto type) {
    using T = decltype(type);
    return own_kernel(context, [s, rows, columns, mode = def.mode](const Buffers& buffers) {
      const T* dy = buffers.in<T>(0);
      if (mode == PoolMode::max) {
        const std::uint8_t* winners = buffers.in<std::uint8_t>(1);
        if (windows_are_apart(s.window)) return max_pool_gradient_apart(s, dy, winners, buffers.out<T>(0));
        return pool_gradient(s, rows, columns, buffers.out<T>(0),
                             [=](std::int64_t offset, std::int32_t index, std::int64_t, std::int64_t) TRAINCTL_INLINE {
                               return [=](std::int64_t k) TRAINCTL_INLINE {
                                 return winners[offset + k] == index ? load(dy[offset + k]) : 0.0f;
                               };
                             });
      }
      pool_gradient(s, rows, columns, buffers.out<T>(0),
                    [=, &s](std::int64_t offset, std::int32_t, std::int64_t oh, std::int64_t ow) TRAINCTL_INLINE {
                      const Inside high = inside(s.window, 0, oh, s.h), wide = inside(s.window, 1, ow, s.w);
                      const float scale = 1.0f / static_cast<float>((high.end - high.begin) * (wide.end - wide.begin));
                      return [=](std::int64_t k) TRAINCTL_INLINE { return load(dy[offset + k]) * scale; };
                    });
    });
  });
}

Lowering lower_global_average_pool2d(const LowerContext& context) {
  const Shape& x = context.input(0).shape;
  const std::int64_t images = x[0], pixels = x[1] * x[2], channels = x[3];
  return with_type(context.input(0).dtype, [&](auto type) {
    using T = decltype(type);
    return own_kernel(context, [=](const Buffers& buffers) {
      const T* source = buffers.in<T>(0);
      T* target = buffers.out<T>(0);
      parallel_ranges(images, 1, [=](std::int64_t begin, std::int64_t end) {
        simd([=]() TRAINCTL_INLINE {
          const float scale = 1.0f / static_cast<float>(pixels);
          for (std::int64_t image = begin; image < end; ++image) {
            each_tile(channels, [&](std::int64_t first, auto width) TRAINCTL_INLINE {
              float sum[width()] = {};
              for (std::int64_t pixel = 0; pixel < pixels; ++pixel) {
                const T* row = source + (image * pixels + pixel) * channels + first;
#pragma omp simd
                for (int k = 0; k < width(); ++k) sum[k] += load(row[k]);
              }
              for (int k = 0; k < width(); ++k) target[image * channels + first + k] = store<T>(sum[k] * scale);
            });
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
    return own_kernel(context, [=](const Buffers& buffers) {
      const T* dy = buffers.in<T>(0);
      T* dx = buffers.out<T>(0);
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
