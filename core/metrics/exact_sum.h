// Sums of float32 values without rounding, so that the order and grouping of the additions do not matter (Kulisch's
// long accumulator).
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
  // The sum in float64, with an error of a few units in the last place at most; equal sums return equal values.
  double value() const;

 private:
  // The limbs, where limb i counts multiples of 2^(32 * i - 149), then the number of values that were not finite.
  Words words_{};
};

}  // namespace trainctl
