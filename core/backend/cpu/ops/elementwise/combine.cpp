// Products, extremes and multiples of tensors, element by element.
#include "core/graph/ops/elementwise/combine.h"

#include <algorithm>

#include "core/backend/cpu/kernels.h"
#include "core/backend/cpu/simd/narrowing.h"
#include "core/backend/cpu/simd/simd.h"

namespace trainctl::cpu {
namespace {

// y[i] = value(i), where operand(buffers) returns value, a function of the element's index.
template <class T, class Operand>
Lowering lower_map(const LowerContext& context, Operand operand) {
  const std::int64_t count = context.output(0).shape.count();
  return own_kernel(context, [=](const Buffers& buffers) {
    const auto value = operand(buffers);
    T* y = buffers.out<T>(0);
    parallel_ranges(count, element_grain, [=](std::int64_t begin, std::int64_t end) {
      simd([=]() TRAINCTL_INLINE { store_each(y, begin, end, value); });
    });
  });
}

// Whether a is the extreme value of a and b; true for equal values. NaN is extreme; the result is false if both values
// are NaN.
template <Extreme which>
TRAINCTL_INLINE inline bool is_extreme(float a, float b) {
  return which == Extreme::largest ? !(b > a) && b == b : !(b < a) && b == b;
}

// Calls make(which) with the kind of extreme as a compile-time constant.
template <class Make>
Lowering with_extreme(Extreme which, const Make& make) {
  if (which == Extreme::largest) return make(std::integral_constant<Extreme, Extreme::largest>{});
  return make(std::integral_constant<Extreme, Extreme::smallest>{});
}

// The samples, positions and channels of x [N, P..., C].
struct Channels {
  std::int64_t samples, positions, channels;

  explicit Channels(const Shape& x)
      : samples(x[0]), positions(x.count() / std::max<std::int64_t>(1, x[0] * x.back())), channels(x.back()) {}
};

template <class T>
Lowering lower_channels(const LowerContext& context) {
  const Channels size(context.input(0).shape);
  return own_kernel(context, [size](const Buffers& buffers) {
    const T *x = buffers.in<T>(0), *s = buffers.in<T>(1);
    T* y = buffers.out<T>(0);
    const std::int64_t rows = size.samples * size.positions;
    parallel_ranges(rows, std::max<std::int64_t>(1, element_grain / size.channels),
                    [=](std::int64_t begin, std::int64_t end) {
                      for (std::int64_t row = begin; row < end; ++row) {
                        const T *from = x + row * size.channels, *by = s + row / size.positions * size.channels;
                        T* const to = y + row * size.channels;
                        simd([=]() TRAINCTL_INLINE {
#pragma omp simd
                          for (std::int64_t c = 0; c < size.channels; ++c)
                            to[c] = store<T>(load(from[c]) * load(by[c]));
                        });
                      }
                    });
  });
}

constexpr std::int64_t run = 64;  // number of channels that a thread sums together

// Adds up the positions of a sample in order, for runs of channels.
template <class T>
Lowering lower_channels_gradient(const LowerContext& context) {
  const Channels size(context.input(0).shape);
  return own_kernel(context, [size](const Buffers& buffers) {
    const T *dy = buffers.in<T>(0), *x = buffers.in<T>(1);
    T* ds = buffers.out<T>(0);
    const std::int64_t runs = (size.channels + run - 1) / run;
    const std::int64_t grain = std::max<std::int64_t>(1, element_grain / (run * size.positions));
    parallel_ranges(size.samples * runs, grain, [=](std::int64_t begin, std::int64_t end) {
      for (std::int64_t r = begin; r < end; ++r) {
        const std::int64_t sample = r / runs, first = r % runs * run, width = std::min(run, size.channels - first);
        const std::int64_t start = sample * size.positions * size.channels + first;
        simd([=]() TRAINCTL_INLINE {
          float sums[run] = {};
          for (std::int64_t p = 0; p < size.positions; ++p) {
            const T *a = dy + start + p * size.channels, *b = x + start + p * size.channels;
#pragma omp simd
            for (std::int64_t c = 0; c < width; ++c) sums[c] += load(a[c]) * load(b[c]);
          }
          for (std::int64_t c = 0; c < width; ++c) ds[sample * size.channels + first + c] = store<T>(sums[c]);
        });
      }
    });
  });
}

}  // namespace

Lowering lower_multiply(const LowerContext& context) {
  return with_type(context.input(0).dtype, [&](auto type) {
    using T = decltype(type);
    return lower_map<T>(context, [](const Buffers& buffers) {
      const T *a = buffers.in<T>(0), *b = buffers.in<T>(1);
      return [=](std::int64_t i) TRAINCTL_INLINE { return load(a[i]) * load(b[i]); };
    });
  });
}

Lowering lower_multiply_channels(const LowerContext& context) {
  return with_type(context.input(0).dtype, [&](auto type) { return lower_channels<decltype(type)>(context); });
}

Lowering lower_multiply_channels_grad(const LowerContext& context) {
  return with_type(context.input(0).dtype, [&](auto type) { return lower_channels_gradient<decltype(type)>(context); });
}

Lowering lower_scale_by(const LowerContext& context) {
  return with_type(context.input(0).dtype, [&, factor = context.op.as<ScaleBy>().factor](auto type) {
    using T = decltype(type);
    return lower_map<T>(context, [factor](const Buffers& buffers) {
      const T* x = buffers.in<T>(0);
      return [=](std::int64_t i) TRAINCTL_INLINE { return factor * load(x[i]); };
    });
  });
}

Lowering lower_extremum(const LowerContext& context) {
  return with_type(context.input(0).dtype, [&](auto type) {
    return with_extreme(context.op.as<Extremum>().which, [&](auto which) {
      using T = decltype(type);
      return lower_map<T>(context, [](const Buffers& buffers) {
        const T *a = buffers.in<T>(0), *b = buffers.in<T>(1);
        return [=](std::int64_t i) TRAINCTL_INLINE {
          const float left = load(a[i]), right = load(b[i]);
          return is_extreme<decltype(which)::value>(left, right) ? left : right;
        };
      });
    });
  });
}

Lowering lower_extremum_grad(const LowerContext& context) {
  const std::int64_t count = context.output(0).shape.count();
  return with_type(context.input(0).dtype, [&](auto type) {
    return with_extreme(context.op.as<ExtremumGrad>().which, [&](auto which) {
      using T = decltype(type);
      return own_kernel(context, [count](const Buffers& buffers) {
        const T *dy = buffers.in<T>(0), *a = buffers.in<T>(1), *b = buffers.in<T>(2);
        T *da = buffers.out<T>(0), *db = buffers.out<T>(1);
        parallel_ranges(count, element_grain, [=](std::int64_t begin, std::int64_t end) {
          simd([=]() TRAINCTL_INLINE {
#pragma omp simd
            for (std::int64_t i = begin; i < end; ++i) {
              const float gradient = load(dy[i]);
              const bool left = is_extreme<decltype(which)::value>(load(a[i]), load(b[i]));
              da[i] = store<T>(left ? gradient : 0.0f);
              db[i] = store<T>(left ? 0.0f : gradient);
            }
          });
        });
      });
    });
  });
}

}  // namespace trainctl::cpu
