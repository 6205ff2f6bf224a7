// Finds different numbers that are equal in float32.
#include "io/datasets/tables/number_range.h"

#include <algorithm>
#include <cmath>

#include "core/base/format.h"

namespace trainctl {

void NumberRange::add(double number) {
  constexpr std::size_t most = 1024;  // more than a range in which numbers are warned of has
  smallest = std::min(smallest, number);
  largest = std::max(largest, number);
  if (!first_of_float || equal_in_float) return;
  const auto [first, is_new] = first_of_float->emplace(static_cast<float>(number), number);
  if (!is_new && first->second != number) equal_in_float.emplace(first->second, number);
  if (equal_in_float || first_of_float->size() > most) first_of_float.reset();
}

std::string NumberRange::warning(const std::string& path, const std::string& column) const {
  constexpr double fewest = 256;
  if (!equal_in_float) return "";
  constexpr int digits = std::numeric_limits<float>::digits;
  const double step = std::ldexp(1.0, std::ilogb(std::max(std::abs(smallest), std::abs(largest))) - digits + 1);
  if ((largest - smallest) / step >= fewest) return "";
  return format(
      "{}: column '{}' has numbers from {:.15g} to {:.15g}, of which float32 keeps steps of {:g} only, so that {:.15g} "
      "and {:.15g} are the same number: subtract a constant from the column",
      path, column, smallest, largest, step, equal_in_float->first, equal_in_float->second);
}

}  // namespace trainctl
