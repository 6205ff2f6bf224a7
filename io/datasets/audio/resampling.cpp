// Interpolates sound by a windowed sinc function. The weights repeat after every `to_` values of the result.
#include "io/datasets/audio/resampling.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

namespace trainctl {
namespace {

constexpr double zeros = 6;            // of the sinc function on each side
constexpr double passed_share = 0.99;  // of half the lower rate

double sinc(double x) { return x == 0 ? 1 : std::sin(std::numbers::pi * x) / (std::numbers::pi * x); }

// The weight of a value whose distance, in zeros of the sinc function, is t.
double windowed_sinc(double t) {
  if (std::abs(t) >= zeros) return 0;
  const double window = std::cos(t * std::numbers::pi / (2 * zeros));
  return sinc(t) * window * window;
}

}  // namespace

Resampling::Resampling(std::int64_t from, std::int64_t to) {
  const std::int64_t divisor = std::gcd(from, to);
  from_ = from / divisor;
  to_ = to / divisor;
  cutoff_ = passed_share * std::min(1.0, static_cast<double>(to_) / static_cast<double>(from_));
  reach_ = static_cast<std::int64_t>(std::ceil(zeros / cutoff_));
}

std::int64_t Resampling::length_after(std::int64_t length) const { return (length * to_ + from_ - 1) / from_; }

std::int64_t Resampling::length_before(std::int64_t length) const {
  return from_ == to_ ? length : (length * from_ + to_ - 1) / to_ + reach_;
}

void Resampling::apply(const float* x, std::int64_t length, std::int64_t channels, float* y,
                       std::int64_t length_to) const {
  if (from_ == to_) {
    std::copy_n(x, length_to * channels, y);
    return;
  }
  std::vector<double> weights(static_cast<std::size_t>(2 * reach_ + 1)), sums(static_cast<std::size_t>(channels));
  for (std::int64_t phase = 0; phase < std::min(to_, length_to); ++phase) {
    // The values of this phase lie `offset` values of x after a multiple of from_, of which `share` is the fraction.
    const std::int64_t offset = phase * from_ / to_;
    const double share = static_cast<double>(phase * from_ % to_) / static_cast<double>(to_);
    for (std::int64_t k = -reach_; k <= reach_; ++k) {
      weights[static_cast<std::size_t>(k + reach_)] =
          windowed_sinc((static_cast<double>(k) - share) * cutoff_) * cutoff_;
    }
    for (std::int64_t j = phase; j < length_to; j += to_) {
      const std::int64_t centre = j / to_ * from_ + offset;
      const std::int64_t begin = std::max<std::int64_t>(0, centre - reach_),
                         end = std::min(length, centre + reach_ + 1);
      std::fill(sums.begin(), sums.end(), 0.0);
      for (std::int64_t i = begin; i < end; ++i) {
        const double weight = weights[static_cast<std::size_t>(i - centre + reach_)];
        for (std::int64_t c = 0; c < channels; ++c) {
          sums[static_cast<std::size_t>(c)] += weight * double{x[i * channels + c]};
        }
      }
      for (std::int64_t c = 0; c < channels; ++c) {
        y[j * channels + c] = static_cast<float>(sums[static_cast<std::size_t>(c)]);
      }
    }
  }
}

}  // namespace trainctl
