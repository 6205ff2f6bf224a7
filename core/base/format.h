// String formatting by {fmt}, until every supported compiler has std::format. Only this header includes {fmt}.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <utility>

namespace trainctl {

// Calls fmt::format. It is an object instead of a function, so that arguments of types from std do not add std::format
// to the overload set.
struct Format {
  template <class... T>
  std::string operator()(fmt::format_string<T...> text, T&&... values) const {
    return fmt::format(text, std::forward<T>(values)...);
  }
};
inline constexpr Format format;

// Returns a number of bytes in decimal units, such as "512 bytes", "1.2 kB" or "553.4 MB".
std::string byte_text(std::int64_t bytes);
}  // namespace trainctl
