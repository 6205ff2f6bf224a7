// Replaces pixels by functions of their value.
#pragma once

#include <array>
#include <cstdint>

#include "io/loader/images/augmentation.h"

namespace trainctl {

// Replaces every value v of a channel by function(v), a float. For bytes, the function is evaluated to a table of 256
// values, rounded to the nearest byte.
template <class Function>
void map_channel(Canvas& canvas, std::int64_t channel, Function function) {
  const std::int64_t channels = canvas.channels(), count = canvas.count();
  if (canvas.dtype() == DType::float32) {
    auto* values = canvas.pixels<float>();
    for (std::int64_t i = channel; i < count; i += channels) values[i] = function(values[i]);
    return;
  }
  std::array<std::uint8_t, 256> table;
  for (std::size_t i = 0; i < table.size(); ++i) table[i] = as_pixel<std::uint8_t>(function(static_cast<float>(i)));
  auto* values = canvas.pixels<std::uint8_t>();
  for (std::int64_t i = channel; i < count; i += channels) values[i] = table[values[i]];
}

// Returns the mean of a channel.
template <class T>
double mean_of(const T* values, std::int64_t count, std::int64_t channels, std::int64_t channel) {
  using Sum = std::conditional_t<std::is_same_v<T, float>, double, std::int64_t>;
  Sum sum = 0;
  for (std::int64_t i = channel; i < count; i += channels) sum += static_cast<Sum>(values[i]);
  return static_cast<double>(sum) / (static_cast<double>(count) / static_cast<double>(channels));
}

}  // namespace trainctl
