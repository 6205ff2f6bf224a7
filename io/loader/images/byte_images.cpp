// Operations on images of bytes. Each is one pass over the pixels; operations that need a statistic compute it in an
// earlier pass.
#include "io/loader/images/byte_images.h"

#include <algorithm>
#include <numeric>

#include "io/loader/images/pointwise.h"

namespace trainctl {
namespace {

// The grey value of a pixel of three channels, with the weights of ITU-R 601.
float grey(const std::uint8_t* pixel) {
  return 0.2989f * static_cast<float>(pixel[0]) + 0.587f * static_cast<float>(pixel[1]) +
         0.114f * static_cast<float>(pixel[2]);
}

double mean_grey(Canvas& canvas) {
  const auto* pixels = canvas.pixels<std::uint8_t>();
  const std::int64_t n = canvas.count(), channels = canvas.channels();
  if (channels != 3) return mean_of(pixels, n, 1, 0);
  return 0.2989 * mean_of(pixels, n, 3, 0) + 0.587 * mean_of(pixels, n, 3, 1) + 0.114 * mean_of(pixels, n, 3, 2);
}

template <class Function>
void map_all(Canvas& canvas, Function function) {
  for (std::int64_t c = 0; c < canvas.channels(); ++c) map_channel(canvas, c, function);
}

using Histogram = std::array<std::int64_t, 256>;

Histogram histogram(Canvas& canvas, std::int64_t channel) {
  Histogram counts{};
  const auto* pixels = canvas.pixels<std::uint8_t>();
  for (std::int64_t i = channel; i < canvas.count(); i += canvas.channels()) ++counts[pixels[i]];
  return counts;
}

// The smallest and the largest value that occurs.
std::int64_t smallest(const Histogram& counts) {
  return std::find_if(counts.begin(), counts.end(), [](std::int64_t n) { return n > 0; }) - counts.begin();
}
std::int64_t largest(const Histogram& counts) {
  return 255 - (std::find_if(counts.rbegin(), counts.rend(), [](std::int64_t n) { return n > 0; }) - counts.rbegin());
}

}  // namespace

void adjust_brightness(Canvas& canvas, float factor) {
  map_all(canvas, [=](float value) { return factor * value; });
}

void adjust_contrast(Canvas& canvas, float factor) {
  const auto mean = static_cast<float>(mean_grey(canvas));
  map_all(canvas, [=](float value) { return mix(mean, value, factor); });
}

void adjust_color(Canvas& canvas, float factor) {
  if (canvas.channels() != 3) return;
  auto* pixel = canvas.pixels<std::uint8_t>();
  for (const auto* end = pixel + canvas.count(); pixel < end; pixel += 3) {
    const float without = grey(pixel);
    for (int c = 0; c < 3; ++c) pixel[c] = as_pixel<std::uint8_t>(mix(without, static_cast<float>(pixel[c]), factor));
  }
}

void adjust_sharpness(Canvas& canvas, float factor) {
  const std::int64_t height = canvas.height(), n = canvas.channels(), row = canvas.width() * n;
  const auto* from = canvas.pixels<std::uint8_t>();
  auto* to = canvas.blank<std::uint8_t>();
  std::copy_n(from, canvas.count(), to);  // pixels at the border are unchanged
  for (std::int64_t y = 1; y + 1 < height; ++y) {
    for (std::int64_t i = y * row + n; i < (y + 1) * row - n; ++i) {
      int sum = 4 * from[i];
      for (const std::int64_t at : {i - row, i, i + row}) sum += from[at - n] + from[at] + from[at + n];
      to[i] = as_pixel<std::uint8_t>(mix(static_cast<float>(sum) / 13, static_cast<float>(from[i]), factor));
    }
  }
  canvas.turn();
}

void posterize(Canvas& canvas, int bits) {
  const int mask = 0xFF << (8 - bits);
  map_all(canvas, [=](float value) { return static_cast<float>(static_cast<int>(value) & mask); });
}

void solarize(Canvas& canvas, float threshold) {
  map_all(canvas, [=](float value) { return value >= threshold ? 255 - value : value; });
}

void autocontrast(Canvas& canvas) {
  for (std::int64_t c = 0; c < canvas.channels(); ++c) {
    const Histogram counts = histogram(canvas, c);
    const auto low = static_cast<float>(smallest(counts)), high = static_cast<float>(largest(counts));
    if (low < high) map_channel(canvas, c, [=](float value) { return (value - low) * (255 / (high - low)); });
  }
}

void equalize(Canvas& canvas) {
  for (std::int64_t c = 0; c < canvas.channels(); ++c) {
    const Histogram counts = histogram(canvas, c);
    const std::int64_t all = std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
    const std::int64_t step = (all - counts[static_cast<std::size_t>(largest(counts))]) / 255;
    if (step == 0) continue;
    std::array<float, 256> table;
    std::int64_t below = step / 2;  // plus the number of smaller values
    for (std::size_t i = 0; i < table.size(); ++i) {
      table[i] = static_cast<float>(std::min<std::int64_t>(255, below / step));
      below += counts[i];
    }
    map_channel(canvas, c, [&](float value) { return table[static_cast<std::size_t>(value)]; });
  }
}

}  // namespace trainctl
