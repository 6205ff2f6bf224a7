// Changes the sampling rate of sound.
#pragma once

#include <cstdint>
#include <vector>

namespace trainctl {

// Converts sound from one sampling rate to another one by interpolation with a windowed sinc function: 6 of its zeros
// on each side under a window of Hann, and frequencies above 0.99 of half the lower rate are left out.
class Resampling {
 public:
  // Rates are from 1 to largest_sampling_rate.
  Resampling(std::int64_t from, std::int64_t to);

  // The length of sound of `length` values after the conversion, rounded up.
  std::int64_t length_after(std::int64_t length) const;
  // The number of values that the first `length` values of the result depend on.
  std::int64_t length_before(std::int64_t length) const;
  // Writes the first `length_to` values of all channels to `y` [length_to, channels]. x [length, channels] is 0 before
  // its begin and after its end.
  void apply(const float* x, std::int64_t length, std::int64_t channels, float* y, std::int64_t length_to) const;

 private:
  std::int64_t from_, to_;  // divided by their greatest common divisor
  double cutoff_ = 0;       // in half-periods per value of x
  std::int64_t reach_ = 0;  // values of x before and after the place of a value of y that contribute to it
};

}  // namespace trainctl
