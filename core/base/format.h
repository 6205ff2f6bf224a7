// The home of {fmt}: string formatting until std::format is in every supported compiler.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>

namespace trainctl {
using fmt::format;

// "512 bytes", "1.2 kB", "553.4 MB": decimal units.
std::string byte_text(std::int64_t bytes);
}  // namespace trainctl
