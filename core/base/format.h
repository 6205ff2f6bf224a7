// The home of {fmt}: string formatting until std::format is in every supported compiler.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <utility>

namespace trainctl {

// Calls fmt::format. It is an object and no function, so that arguments of types from std do not bring std::format into
// the overload set.
struct Format {
  template <class... T>
  std::string operator()(fmt::format_string<T...> text, T&&... values) const {
    return fmt::format(text, std::forward<T>(values)...);
  }
};
inline constexpr Format format;

// "512 bytes", "1.2 kB", "553.4 MB": decimal units.
std::string byte_text(std::int64_t bytes);
}  // namespace trainctl
