// Computes a Fourier transform from those of every second, third, ... value.
#include "io/loader/signals/fourier.h"

#include <cmath>
#include <numbers>

namespace trainctl {
namespace {

std::int64_t smallest_factor(std::int64_t number) {
  for (std::int64_t factor = 2; factor * factor <= number; ++factor) {
    if (number % factor == 0) return factor;
  }
  return number;
}

}  // namespace

FourierTransform::FourierTransform(std::int64_t length) {
  for (std::int64_t k = 0; k < length; ++k) {
    const double angle = -2 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(length);
    roots_.emplace_back(std::cos(angle), std::sin(angle));
  }
}

void FourierTransform::apply(const std::complex<double>* x, std::complex<double>* y) const {
  transform(x, y, length(), 1);
}

void FourierTransform::transform(const std::complex<double>* x, std::complex<double>* y, std::int64_t length,
                                 std::int64_t stride) const {
  if (length == 1) {
    y[0] = x[0];
    return;
  }
  const std::int64_t parts = smallest_factor(length), part = length / parts;
  for (std::int64_t p = 0; p < parts; ++p) transform(x + p * stride, y + p * part, part, stride * parts);
  const auto root = [&](std::int64_t k) { return roots_[static_cast<std::size_t>(k)]; };
  if (parts == 2) {
    for (std::int64_t k = 0; k < part; ++k) {
      const std::complex<double> even = y[k], odd = y[part + k] * root(k * stride);
      y[k] = even + odd;
      y[part + k] = even - odd;
    }
    return;
  }
  std::vector<std::complex<double>> terms(static_cast<std::size_t>(parts));
  for (std::int64_t k = 0; k < part; ++k) {
    for (std::int64_t p = 0; p < parts; ++p) terms[static_cast<std::size_t>(p)] = y[p * part + k];
    for (std::int64_t q = 0; q < parts; ++q) {
      std::complex<double> sum = 0;
      for (std::int64_t p = 0; p < parts; ++p) {
        sum += terms[static_cast<std::size_t>(p)] * root(p * (q * part + k) % length * stride);
      }
      y[q * part + k] = sum;
    }
  }
}

}  // namespace trainctl
