// Computes products, extremes and multiples, element by element.
#include "core/graph/ops/elementwise/combine.h"

#include "core/backend/cuda/device/pack.h"
#include "core/backend/cuda/kernels.h"

namespace trainctl::cuda {
namespace {

struct Product {
  __device__ float operator()(float a, float b) const { return a * b; }
};

// Whether a is the extreme value of a and b; true for equal values. NaN counts as extreme.
__device__ bool is_extreme(Extreme which, float a, float b) {
  return which == Extreme::largest ? !(b > a) && b == b : !(b < a) && b == b;
}

struct Extremal {
  Extreme which;
  __device__ float operator()(float a, float b) const { return is_extreme(which, a, b) ? a : b; }
};

// y = of(a, b); each thread computes packs of neighbouring elements.
template <class T, class Of>
__global__ void map_two(const T* a, const T* b, T* y, std::int64_t count, Of of) {
  constexpr int width = widest<T>;
  const std::int64_t whole = count / width;
  for (std::int64_t i = first_element(); i < whole; i += element_stride()) {
    Pack<T, width> pack = pack_at<width>(a + i * width);
    const Pack<T, width> other = pack_at<width>(b + i * width);
#pragma unroll
    for (int k = 0; k < width; ++k) pack.values[k] = store<T>(of(load(pack.values[k]), load(other.values[k])));
    pack_at<width>(y + i * width) = pack;
  }
  const std::int64_t rest = whole * width + first_element();
  if (rest < count) y[rest] = store<T>(of(load(a[rest]), load(b[rest])));
}

template <class T>
__global__ void multiple(const T* x, T* y, std::int64_t count, float factor) {
  constexpr int width = widest<T>;
  const std::int64_t whole = count / width;
  for (std::int64_t i = first_element(); i < whole; i += element_stride()) {
    Pack<T, width> pack = pack_at<width>(x + i * width);
#pragma unroll
    for (T& value : pack.values) value = store<T>(factor * load(value));
    pack_at<width>(y + i * width) = pack;
  }
  const std::int64_t rest = whole * width + first_element();
  if (rest < count) y[rest] = store<T>(factor * load(x[rest]));
}

template <class T>
__global__ void extremum_gradient(const T* dy, const T* a, const T* b, T* da, T* db, std::int64_t count,
                                  Extreme which) {
  for (std::int64_t i = first_element(); i < count; i += element_stride()) {
    const T gradient = dy[i];
    const bool left = is_extreme(which, load(a[i]), load(b[i]));
    da[i] = left ? gradient : store<T>(0.0f);
    db[i] = left ? store<T>(0.0f) : gradient;
  }
}

// The numbers of packs in a sample, and in its channels.
struct Channels {
  std::uint32_t sample, channels;
};

template <class T, int width>
__global__ void by_channel(const T* x, const T* s, T* y, std::uint32_t packs, Channels size) {
  for (auto i = static_cast<std::uint32_t>(first_element()); i < packs; i += element_stride()) {
    const std::uint32_t factor = i / size.sample * size.channels + i % size.channels;
    Pack<T, width> pack = pack_at<width>(x + std::int64_t{i} * width);
    const Pack<T, width> by = pack_at<width>(s + std::int64_t{factor} * width);
#pragma unroll
    for (int k = 0; k < width; ++k) pack.values[k] = store<T>(load(pack.values[k]) * load(by.values[k]));
    pack_at<width>(y + std::int64_t{i} * width) = pack;
  }
}

// A thread adds up the positions of one channel of a sample, in their order, so that neighbouring threads read
// neighbouring channels.
template <class T>
__global__ void channel_sums(const T* dy, const T* x, T* ds, std::int64_t sums, std::int64_t positions,
                             std::int64_t channels) {
  for (std::int64_t i = first_element(); i < sums; i += element_stride()) {
    const std::int64_t first = i / channels * positions * channels + i % channels;
    float sum = 0;
#pragma unroll 4
    for (std::int64_t p = 0; p < positions; ++p) {
      sum += load(dy[first + p * channels]) * load(x[first + p * channels]);
    }
    ds[i] = store<T>(sum);
  }
}

template <class Of>
Lowering lower_two(const LowerContext& context, Of of) {
  const std::int64_t count = context.output(0).shape.count();
  return with_type(context.input(0).dtype, [&](auto type) {
    using T = decltype(type);
    return own_kernel(context, [=](const Buffers& p) {
      launch(map_two<T, Of>, blocks_for(count, widest<T>), block_threads, p.stream, p.in<T>(0), p.in<T>(1), p.out<T>(0),
             count, of);
    });
  });
}

}  // namespace

Lowering lower_multiply(const LowerContext& context) { return lower_two(context, Product{}); }

Lowering lower_extremum(const LowerContext& context) {
  return lower_two(context, Extremal{context.op.as<Extremum>().which});
}

Lowering lower_extremum_grad(const LowerContext& context) {
  const Extreme which = context.op.as<ExtremumGrad>().which;
  const std::int64_t count = context.output(0).shape.count();
  return with_type(context.input(0).dtype, [&](auto type) {
    using T = decltype(type);
    return own_kernel(context, [=](const Buffers& p) {
      launch(extremum_gradient<T>, blocks_for(count), block_threads, p.stream, p.in<T>(0), p.in<T>(1), p.in<T>(2),
             p.out<T>(0), p.out<T>(1), count, which);
    });
  });
}

Lowering lower_scale_by(const LowerContext& context) {
  const float factor = context.op.as<ScaleBy>().factor;
  const std::int64_t count = context.output(0).shape.count();
  return with_type(context.input(0).dtype, [&](auto type) {
    using T = decltype(type);
    return own_kernel(context, [=](const Buffers& p) {
      launch(multiple<T>, blocks_for(count, widest<T>), block_threads, p.stream, p.in<T>(0), p.out<T>(0), count,
             factor);
    });
  });
}

Lowering lower_multiply_channels(const LowerContext& context) {
  const Shape& x = context.input(0).shape;
  return with_packs(context.input(0).dtype, x.back(), [&](auto type, auto packed) {
    using T = decltype(type);
    constexpr int width = decltype(packed)::value;
    const std::uint32_t packs = narrow(x.count() / width);
    const Channels size{narrow(x.without_front().count() / width), narrow(x.back() / width)};
    return own_kernel(context, [=](const Buffers& p) {
      launch(by_channel<T, width>, blocks_for(packs), block_threads, p.stream, p.in<T>(0), p.in<T>(1), p.out<T>(0),
             packs, size);
    });
  });
}

Lowering lower_multiply_channels_grad(const LowerContext& context) {
  const Shape& x = context.input(0).shape;
  const std::int64_t channels = x.back(), sums = x[0] * channels, positions = x.without_front().count() / channels;
  return with_type(context.input(0).dtype, [&](auto type) {
    using T = decltype(type);
    return own_kernel(context, [=](const Buffers& p) {
      launch(channel_sums<T>, blocks_for(sums), block_threads, p.stream, p.in<T>(0), p.in<T>(1), p.out<T>(0), sums,
             positions, channels);
    });
  });
}

}  // namespace trainctl::cuda
