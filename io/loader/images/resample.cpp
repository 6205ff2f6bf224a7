// Resamples row by row in fixed point. The range of a row in which all neighbours are inside the image is computed
// first, and is processed by a loop without branches.
#include "io/loader/images/resample.h"

#include <algorithm>
#include <cmath>

namespace trainctl {
namespace {

// Coordinates with 32 fractional bits.
using Fixed = std::int64_t;
constexpr Fixed one = Fixed{1} << 32;

Fixed fixed(double value) { return std::llround(value * 0x1p32); }
std::int64_t whole(Fixed value) { return value >> 32; }
// The upper 24 fractional bits, which float32 represents exactly.
float fraction(Fixed value) { return static_cast<float>(static_cast<std::int32_t>(value >> 8 & 0xFFFFFF)) * 0x1p-24f; }

std::int64_t floor_div(std::int64_t a, std::int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }

// A coordinate along an output row, start + step * x.
struct Line {
  Fixed start, step;

  // Reduces [first, last) to the values x with 0 <= start + step * x < limit.
  void clip(Fixed limit, std::int64_t& first, std::int64_t& last) const {
    if (step == 0) {
      if (start < 0 || start >= limit) last = first;
    } else if (step > 0) {
      first = std::max(first, -floor_div(start, step));
      last = std::min(last, floor_div(limit - 1 - start, step) + 1);
    } else {
      first = std::max(first, -floor_div(limit - 1 - start, -step));
      last = std::min(last, floor_div(start, -step) + 1);
    }
    last = std::max(first, last);
  }
};

// Returns the index of the element that is used for position i of n elements; -1 for the constant.
std::int64_t source_index(std::int64_t i, std::int64_t n, FillMode mode) {
  if (i >= 0 && i < n) return i;
  if (mode == FillMode::constant) return -1;
  if (mode == FillMode::nearest) return i < 0 ? 0 : n - 1;
  const std::int64_t period = mode == FillMode::wrap ? n : 2 * n;
  if (i < 0) i += period;  // mostly sufficient, and faster than a division
  if (i < 0 || i >= period) i -= floor_div(i, period) * period;
  return i < n ? i : period - 1 - i;
}

// Reads pixels of type float and writes pixels of type T.
template <class T>
struct Resampler {
  const float* from;
  std::int64_t height, width, channels;
  const Sampling& sampling;

  float value(std::int64_t y, std::int64_t x, std::int64_t c) const {
    if (y >= 0 && x >= 0) return from[(y * width + x) * channels + c];
    return sampling.fill[sampling.fill.size() == 1 ? 0 : static_cast<std::size_t>(c)];
  }

  // Computes one pixel at any position.
  void pixel(Fixed y, Fixed x, T* to) const {
    const FillMode mode = sampling.fill_mode;
    const std::int64_t top = source_index(whole(y), height, mode), left = source_index(whole(x), width, mode);
    if (sampling.interpolation == Interpolation::nearest) {
      for (std::int64_t c = 0; c < channels; ++c) to[c] = as_pixel<T>(value(top, left, c));
      return;
    }
    const std::int64_t bottom = source_index(whole(y) + 1, height, mode),
                       right = source_index(whole(x) + 1, width, mode);
    for (std::int64_t c = 0; c < channels; ++c) {
      to[c] = as_pixel<T>(mix(mix(value(top, left, c), value(top, right, c), fraction(x)),
                              mix(value(bottom, left, c), value(bottom, right, c), fraction(x)), fraction(y)));
    }
  }

  // Computes pixels whose neighbours are inside the image; `fixed_channels` is the number of channels, or 0 if it is
  // unknown at compile time.
  template <int fixed_channels>
  void inside(Line y, Line x, std::int64_t first, std::int64_t last, T* to) const {
    const std::int64_t n = fixed_channels > 0 ? fixed_channels : channels, row = width * n;
    Fixed v = y.start + y.step * first, u = x.start + x.step * first;
    to += first * n;
    if (sampling.interpolation == Interpolation::nearest) {
      for (std::int64_t i = first; i < last; ++i, v += y.step, u += x.step, to += n) {
        const float* at = from + whole(v) * row + whole(u) * n;
        for (std::int64_t c = 0; c < n; ++c) to[c] = static_cast<T>(at[c]);
      }
      return;
    }
    for (std::int64_t i = first; i < last; ++i, v += y.step, u += x.step, to += n) {
      const float* at = from + whole(v) * row + whole(u) * n;
      const float right = fraction(u), bottom = fraction(v);
      for (std::int64_t c = 0; c < n; ++c) {
        const float above = mix(at[c], at[n + c], right);
        const float below = mix(at[row + c], at[row + n + c], right);
        const float mixed = mix(above, below, bottom);
        to[c] = std::is_same_v<T, float> ? static_cast<T>(mixed) : static_cast<T>(mixed + 0.5f);
      }
    }
  }

  void line(Line y, Line x, T* to) const {
    const bool nearest = sampling.interpolation == Interpolation::nearest;
    if (nearest) {
      y.start += one / 2;
      x.start += one / 2;
    }
    std::int64_t first = 0, last = width;
    x.clip((nearest ? width : width - 1) * one, first, last);
    y.clip((nearest ? height : height - 1) * one, first, last);
    for (std::int64_t i = 0; i < std::min(first, width); ++i) {
      pixel(y.start + y.step * i, x.start + x.step * i, to + i * channels);
    }
    if (first < last) {
      channels == 1   ? inside<1>(y, x, first, last, to)
      : channels == 3 ? inside<3>(y, x, first, last, to)
                      : inside<0>(y, x, first, last, to);
    }
    for (std::int64_t i = std::min(last, width); i < width; ++i) {
      pixel(y.start + y.step * i, x.start + x.step * i, to + i * channels);
    }
  }
};

}  // namespace

PlaneMap rotation(double angle, std::int64_t height, std::int64_t width) {
  const double cosine = std::cos(angle), sine = std::sin(angle);
  const double y = static_cast<double>(height - 1) / 2, x = static_cast<double>(width - 1) / 2;
  return {cosine, -sine, x - cosine * x + sine * y, sine, cosine, y - sine * x - cosine * y};
}

void resample(Canvas& canvas, const PlaneMap& map, const Sampling& sampling) {
  visit(canvas, [&]<class T>(const T* pixels) {
    if constexpr (!std::is_same_v<T, float>) {  // converting each byte once is faster than for each read
      std::copy_n(pixels, canvas.count(), canvas.blank<float>());
      canvas.turn();
    }
    T* to = canvas.blank<T>();
    const Resampler<T> resampler{canvas.pixels<float>(), canvas.height(), canvas.width(), canvas.channels(), sampling};
    for (std::int64_t y = 0; y < canvas.height(); ++y, to += canvas.width() * canvas.channels()) {
      const auto at = static_cast<double>(y);
      resampler.line({fixed(map.yy * at + map.y0), fixed(map.yx)}, {fixed(map.xy * at + map.x0), fixed(map.xx)}, to);
    }
  });
  canvas.turn();
}

}  // namespace trainctl
