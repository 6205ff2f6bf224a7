// Compares the values of two tensors.
#include "core/tensor/difference.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "core/base/error.h"
#include "core/base/format.h"

namespace trainctl {

void Difference::add(const Difference& other) {
  elements += other.elements;
  differing += other.differing;
  largest_absolute = std::max(largest_absolute, other.largest_absolute);
  largest_relative = std::max(largest_relative, other.largest_relative);
}

Difference difference(std::span<const float> a, std::span<const float> b) {
  require(a.size() == b.size(), "compared tensors differ in size");
  constexpr double infinite = std::numeric_limits<double>::infinity();
  Difference result{static_cast<std::int64_t>(a.size()), 0, 0, 0};
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::bit_cast<std::uint32_t>(a[i]) == std::bit_cast<std::uint32_t>(b[i])) continue;
    ++result.differing;
    const double x = a[i], y = b[i];
    const bool finite = std::isfinite(x) && std::isfinite(y);
    const double absolute = finite ? std::abs(x - y) : infinite;
    const double larger = std::max(std::abs(x), std::abs(y));
    result.largest_absolute = std::max(result.largest_absolute, absolute);
    if (larger > 0) result.largest_relative = std::max(result.largest_relative, finite ? absolute / larger : infinite);
  }
  return result;
}

std::string to_string(const Difference& difference) {
  if (difference.equal()) return "equal";
  return format("{} of {} elements differ, by {:.3g} at most, {:.3g} relative to the larger", difference.differing,
                difference.elements, difference.largest_absolute, difference.largest_relative);
}

}  // namespace trainctl
