// Formats a number of bytes with its unit.
#include "core/base/format.h"

namespace trainctl {

std::string byte_text(std::int64_t bytes) {
  if (bytes < 1000) return format("{} {}", bytes, bytes == 1 ? "byte" : "bytes");
  static constexpr const char* units[] = {"kB", "MB", "GB", "TB", "PB", "EB"};
  double value = static_cast<double>(bytes) / 1000;
  int unit = 0;
  for (; value >= 999.95; ++unit) value /= 1000;
  return format("{:.1f} {}", value, units[unit]);
}

}  // namespace trainctl
