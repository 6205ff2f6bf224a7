// The version of this build.
#pragma once

#include <string_view>

namespace trainctl {
std::string_view version();
}  // namespace trainctl
