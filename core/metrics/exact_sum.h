// Sums of float32 values without rounding, and so in whatever order and grouping they are added (Kulisch's long
// accumulator).
#pragma once

#include <array>
#include <cstdint>

namespace trainctl {

class ExactSum {
 public:
  // float32 values are multiples of 2^-149 below 2^128: nine limbs of 32 bits hold every value, and a tenth carries.
  static constexpr int limbs = 10;
  // The accumulator as integers that may be added over ranks; each stays in range for 2^30 values in all.
  using Words = std::array<std::int64_t, limbs + 1>;

  // A value that is not finite makes the sum NaN.
  void add(float value);
  const Words& words() const { return words_; }
  void set_words(const Words& words) { words_ = words; }
  // The sum in float64, off by a few units in its last place at most; equal sums give equal values.
  double value() const;

 private:
  Words words_{};  // the limbs, each below 2^32 in the sum's place value, and how many values were not finite
};

}  // namespace trainctl
