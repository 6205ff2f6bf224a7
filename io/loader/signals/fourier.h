// The discrete Fourier transform of sequences of any length.
#pragma once

#include <complex>
#include <cstdint>
#include <vector>

namespace trainctl {

// Y[k] = sum over n of x[n] exp(-2 pi i k n / length), computed by divide and conquer over the prime factors of the
// length (Cooley and Tukey, 1965) in float64.
class FourierTransform {
 public:
  explicit FourierTransform(std::int64_t length);

  std::int64_t length() const { return static_cast<std::int64_t>(roots_.size()); }
  // x and y have length() values, which do not overlap.
  void apply(const std::complex<double>* x, std::complex<double>* y) const;

 private:
  // Transforms the `length` values x[0], x[stride], ...; stride * length is the whole length.
  void transform(const std::complex<double>* x, std::complex<double>* y, std::int64_t length,
                 std::int64_t stride) const;

  std::vector<std::complex<double>> roots_;  // exp(-2 pi i k / length)
};

}  // namespace trainctl
