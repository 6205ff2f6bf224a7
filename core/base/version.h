// The version of this build, such as "1.0.0".
#pragma once

#include <string_view>

namespace trainctl {
std::string_view version();
}  // namespace trainctl
