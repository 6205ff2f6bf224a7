// Resizes in two passes: first vertically, then horizontally.
#include "io/loader/images/resize.h"

#include <algorithm>
#include <cmath>

namespace trainctl {
namespace {

template <class T>
void mix_rows(const T* from, std::int64_t stride, std::int64_t elements, const ResizeAxis& axis, float* to) {
  for (std::int64_t y = 0; y < axis.to; ++y, to += elements) {
    std::fill_n(to, elements, 0.0f);
    for (std::int64_t k = 0; k < axis.taps; ++k) {
      const float weight = axis.weights[static_cast<std::size_t>(y * axis.taps + k)];
      if (weight == 0) continue;
      const T* row = from + (axis.first[static_cast<std::size_t>(y)] + k) * stride;
      for (std::int64_t i = 0; i < elements; ++i) to[i] += weight * static_cast<float>(row[i]);
    }
  }
}

}  // namespace

void ResizeAxis::prepare(std::int64_t input, std::int64_t output) {
  if (from == input && to == output) return;
  from = input;
  to = output;
  const double step = static_cast<double>(input) / static_cast<double>(output);
  const double radius = std::max(1.0, step);  // radius of the triangle filter in input pixels
  taps = std::min<std::int64_t>(input, 2 * static_cast<std::int64_t>(std::ceil(radius)) + 1);
  first.assign(static_cast<std::size_t>(output), 0);
  weights.assign(static_cast<std::size_t>(output * taps), 0.0f);
  std::vector<double> row(static_cast<std::size_t>(taps));
  for (std::int64_t i = 0; i < output; ++i) {
    const double centre = (static_cast<double>(i) + 0.5) * step;
    const auto begin =
        std::clamp<std::int64_t>(static_cast<std::int64_t>(std::floor(centre - radius)), 0, input - taps);
    double sum = 0;
    for (std::int64_t k = 0; k < taps; ++k) {
      const double distance = std::abs(static_cast<double>(begin + k) + 0.5 - centre) / radius;
      row[static_cast<std::size_t>(k)] = std::max(0.0, 1.0 - distance);
      sum += row[static_cast<std::size_t>(k)];
    }
    first[static_cast<std::size_t>(i)] = begin;
    for (std::int64_t k = 0; k < taps; ++k) {
      weights[static_cast<std::size_t>(i * taps + k)] = static_cast<float>(row[static_cast<std::size_t>(k)] / sum);
    }
  }
}

ImageView resize(const ImageView& image, std::int64_t height, std::int64_t width, ResizeScratch& scratch) {
  const std::int64_t channels = image.channels, elements = image.width * channels;
  scratch.vertical.prepare(image.height, height);
  scratch.horizontal.prepare(image.width, width);
  scratch.rows.resize(static_cast<std::size_t>(height * elements));
  scratch.result.resize(static_cast<std::size_t>(height * width * channels));
  if (image.dtype == DType::uint8) {
    mix_rows(static_cast<const std::uint8_t*>(image.data), image.stride, elements, scratch.vertical,
             scratch.rows.data());
  } else {
    mix_rows(static_cast<const float*>(image.data), image.stride, elements, scratch.vertical, scratch.rows.data());
  }
  const ResizeAxis& axis = scratch.horizontal;
  float* to = scratch.result.data();
  for (std::int64_t y = 0; y < height; ++y) {
    const float* row = scratch.rows.data() + y * elements;
    for (std::int64_t x = 0; x < width; ++x, to += channels) {
      std::fill_n(to, channels, 0.0f);
      const float* from = row + axis.first[static_cast<std::size_t>(x)] * channels;
      const float* weights = axis.weights.data() + x * axis.taps;
      for (std::int64_t k = 0; k < axis.taps; ++k, from += channels) {
        for (std::int64_t c = 0; c < channels; ++c) to[c] += weights[k] * from[c];
      }
    }
  }
  return {scratch.result.data(), DType::float32, height, width, channels, width * channels};
}

ImageView resize_nearest(const ImageView& mask, std::int64_t height, std::int64_t width, ResizeScratch& scratch) {
  scratch.mask.resize(static_cast<std::size_t>(height * width));
  const auto* pixels = static_cast<const std::uint8_t*>(mask.data);
  std::uint8_t* to = scratch.mask.data();
  for (std::int64_t y = 0; y < height; ++y) {
    // (y + 1/2) * mask.height / height, rounded down.
    const std::uint8_t* row = pixels + (2 * y + 1) * mask.height / (2 * height) * mask.stride;
    for (std::int64_t x = 0; x < width; ++x) *to++ = row[(2 * x + 1) * mask.width / (2 * width)];
  }
  return {scratch.mask.data(), DType::uint8, height, width, 1, width};
}

}  // namespace trainctl
