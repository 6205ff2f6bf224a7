// Counts values in buckets, which are the upper bits of float32.
#include "core/metrics/histogram.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

namespace trainctl {
namespace {

constexpr int kept_bits = 12, dropped_bits = 32 - kept_bits;
constexpr std::uint32_t magnitudes = Histogram::buckets / 2;  // the sign is the uppermost bit

// The smallest magnitude of a bucket; for the bucket after the last one with finite values, the largest float32.
// Computed without a float32, which processors that flush denormal numbers would turn into zero.
double magnitude(std::uint32_t bucket) {
  const auto exponent = static_cast<int>(bucket >> 3), eighths = static_cast<int>(bucket & 7);
  if (exponent == 255) return std::numeric_limits<float>::max();
  return exponent == 0 ? std::ldexp(eighths, -129) : std::ldexp(8 + eighths, exponent - 130);
}

}  // namespace

void Histogram::add(std::span<const float> values, double scale) {
  for (const float given : values) {
    const float value = static_cast<float>(given * scale) + 0.0f;  // -0 is counted as 0
    if (!std::isfinite(value)) continue;
    const double exact = value;
    ++counts_[std::bit_cast<std::uint32_t>(value) >> dropped_bits];
    sums_[0] += exact;
    sums_[1] += exact * exact;
    extremes_[0] = std::min(extremes_[0], exact);
    extremes_[1] = std::min(extremes_[1], -exact);
  }
}

std::vector<Histogram::Bucket> Histogram::filled() const {
  std::vector<Bucket> found;
  for (std::uint32_t i = magnitudes; i-- > 0;) {
    const std::int64_t negative = counts_[magnitudes + i];
    if (negative > 0) found.push_back({-magnitude(i + 1), -magnitude(i), negative});
  }
  for (std::uint32_t i = 0; i < magnitudes; ++i) {
    if (counts_[i] > 0) found.push_back({magnitude(i), magnitude(i + 1), counts_[i]});
  }
  return found;
}

std::int64_t Histogram::count() const { return std::accumulate(counts_.begin(), counts_.end(), std::int64_t{0}); }

}  // namespace trainctl
