// Computes the windows of Hann and Hamming.
#include "core/layers/signal_window.h"

#include <cmath>
#include <numbers>

namespace trainctl {

std::vector<double> signal_window(SignalWindow kind, std::int64_t length, bool periodic) {
  std::vector<double> window(static_cast<std::size_t>(length), 1.0);
  if (kind == SignalWindow::none || length == 1) return window;
  const double mean = kind == SignalWindow::hann ? 0.5 : 0.54;
  const auto period = static_cast<double>(periodic ? length : length - 1);
  for (std::int64_t i = 0; i < length; ++i) {
    const double angle = 2 * std::numbers::pi * static_cast<double>(i) / period;
    window[static_cast<std::size_t>(i)] = mean - (1 - mean) * std::cos(angle);
  }
  return window;
}

}  // namespace trainctl
