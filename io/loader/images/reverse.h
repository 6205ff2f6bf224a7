// Pixels in reversed order: mirrored rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace trainctl {

// Copies pixels of so many channels, known when compiled.
template <std::size_t channels, class T>
void reverse_pixels(const T* last, std::int64_t pixels, T* to) {
  constexpr std::size_t bytes = channels * sizeof(T);
  constexpr auto step = static_cast<std::int64_t>(channels);
  std::int64_t i = 0;
  if constexpr (bytes == 3) {
    // Four bytes are moved as fast as one: the fourth is read from the pixel before, and written over by the next.
    if (pixels > 0) std::memcpy(to, last, 3);
    for (i = 1; i + 1 < pixels; ++i) std::memcpy(to + i * step, last - i * step, 4);
  }
  for (; i < pixels; ++i) std::memcpy(to + i * step, last - i * step, bytes);
}

// Copies `pixels` whole pixels in reversed order; `last` points to the first channel of the one written first.
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
