// Windows by which frames of a signal are multiplied before a Fourier transform.
#pragma once

#include <cstdint>
#include <vector>

#include "core/spec/type_info.h"

namespace trainctl {

enum class SignalWindow { hann, hamming, none };

template <>
struct EnumNames<SignalWindow> {
  static constexpr EnumName<SignalWindow> names[] = {
      {SignalWindow::hann, "hann"}, {SignalWindow::hamming, "hamming"}, {SignalWindow::none, "none"}};
};

// The values of a window, like scipy.signal.get_window(); 1 for `none`. A periodic window is the beginning of a
// symmetric one that is longer by one value.
std::vector<double> signal_window(SignalWindow kind, std::int64_t length, bool periodic);

}  // namespace trainctl
