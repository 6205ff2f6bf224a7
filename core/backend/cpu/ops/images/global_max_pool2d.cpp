// Global max pooling, the largest value of each channel of an image, and its gradient.
#include "core/graph/ops/images/global_max_pool2d.h"

#include <limits>

#include "core/backend/cpu/kernels.h"
#include "core/backend/cpu/simd/tiles.h"

namespace trainctl::cpu {
namespace {

// The numbers of images, of pixels of an image, and of channels of a pixel.
struct Images {
  std::int64_t count, pixels, channels;

  explicit Images(const Shape& x) : count(x[0]), pixels(x[1] * x[2]), channels(x[3]) {}
};

// Writes the largest value of each image and channel, and the index of its pixel to `winners`, which may be null.
template <class T>
void find_maxima(const Images& images, const T* x, T* y, std::int32_t* winners) {
  parallel_ranges(images.count, 1, [=](std::int64_t begin, std::int64_t end) {
    simd([=]() TRAINCTL_INLINE {
      for (std::int64_t image = begin; image < end; ++image) {
        each_tile(images.channels, [&](std::int64_t first, auto width) TRAINCTL_INLINE {
          float best[width()];
          std::int32_t winner[width()];
          for (int k = 0; k < width(); ++k) {
            best[k] = -std::numeric_limits<float>::infinity();
            winner[k] = 0;
          }
          for (std::int64_t pixel = 0; pixel < images.pixels; ++pixel) {
            const T* values = x + (image * images.pixels + pixel) * images.channels + first;
            const auto index = static_cast<std::int32_t>(pixel);
#pragma omp simd
            for (int k = 0; k < width(); ++k) {
              const float value = load(values[k]), before = best[k];
              const std::int32_t loses = value <= before || before != before ? -1 : 0;  // NaN wins
              best[k] = loses != 0 ? before : value;
              winner[k] = (winner[k] & loses) | (index & ~loses);
            }
          }
          const std::int64_t offset = image * images.channels + first;
#pragma omp simd
          for (int k = 0; k < width(); ++k) y[offset + k] = store<T>(best[k]);
          if (winners == nullptr) return;
#pragma omp simd
          for (int k = 0; k < width(); ++k) winners[offset + k] = winner[k];
        });
      }
    });
  });
}

}  // namespace

Lowering lower_global_max_pool2d(const LowerContext& context) {
  const Images images(context.input(0).shape);
  const bool training = context.op.as<GlobalMaxPool2d>().training;
  return with_type(context.input(0).dtype, [&](auto type) {
    using T = decltype(type);
    return own_kernel(context, [=](const Buffers& buffers) {
      find_maxima(images, buffers.in<T>(0), buffers.out<T>(0), training ? buffers.out<std::int32_t>(1) : nullptr);
    });
  });
}

Lowering lower_global_max_pool2d_grad(const LowerContext& context) {
  const Images images(context.op.as<GlobalMaxPool2dGrad>().input);
  return with_type(context.input(0).dtype, [&](auto type) {
    using T = decltype(type);
    return own_kernel(context, [=](const Buffers& buffers) {
      const T* gradients = buffers.in<T>(0);
      const auto* winners = buffers.in<std::int32_t>(1);
      T* dx = buffers.out<T>(0);
      const std::int64_t grain = std::max<std::int64_t>(1, element_grain / images.channels);
      parallel_ranges(images.count * images.pixels, grain, [=](std::int64_t begin, std::int64_t end) {
        simd([=]() TRAINCTL_INLINE {
          for (std::int64_t row = begin; row < end; ++row) {
            const std::int64_t image = row / images.pixels;
            const auto index = static_cast<std::int32_t>(row % images.pixels);
            const T* dy = gradients + image * images.channels;
            const std::int32_t* winner = winners + image * images.channels;
            T* target = dx + row * images.channels;
#pragma omp simd
            for (std::int64_t k = 0; k < images.channels; ++k) {
              target[k] = store<T>(winner[k] == index ? load(dy[k]) : 0.0f);
            }
          }
        });
      });
    });
  });
}

}  // namespace trainctl::cpu
