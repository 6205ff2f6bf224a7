// Copies pixels in reversed order, for mirrored rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace trainctl {

// Copies pixels of three bytes each in reversed order, with the processor's byte shuffles if it has them; `last` points
// to the first byte of the pixel written first.
void reverse_triples(const std::byte* last, std::int64_t pixels, std::byte* to);

// Copies pixels in reversed order; the number of channels is a template parameter.
template <std::size_t channels, class T>
void reverse_pixels(const T* last, std::int64_t pixels, T* to) {
  constexpr std::size_t bytes = channels * sizeof(T);
  constexpr auto step = static_cast<std::int64_t>(channels);
  if constexpr (bytes == 3) {
    reverse_triples(reinterpret_cast<const std::byte*>(last), pixels, reinterpret_cast<std::byte*>(to));
  } else {
    for (std::int64_t i = 0; i < pixels; ++i) std::memcpy(to + i * step, last - i * step, bytes);
  }
}

// Copies `pixels` whole pixels in reversed order; `last` points to the first channel of the pixel written first.
template <class T>
void reverse_pixels(const T* last, std::int64_t pixels, std::int64_t channels, T* to) {
  if (channels == 1) return reverse_pixels<1>(last, pixels, to);
  if (channels == 3) return reverse_pixels<3>(last, pixels, to);
  if (channels == 4) return reverse_pixels<4>(last, pixels, to);
  for (std::int64_t i = 0; i < pixels; ++i, last -= channels, to += channels) {
    std::memcpy(to, last, static_cast<std::size_t>(channels) * sizeof(T));
  }
}

}  // namespace trainctl
