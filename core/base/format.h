// The home of {fmt}: string formatting until std::format is in every supported compiler.
#pragma once

#include <fmt/format.h>

namespace trainctl {
using fmt::format;
}  // namespace trainctl
