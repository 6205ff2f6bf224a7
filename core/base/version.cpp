// The version of this build, from the build system.
#include "core/base/version.h"

namespace trainctl {
std::string_view version() { return TRAINCTL_VERSION; }
}  // namespace trainctl
