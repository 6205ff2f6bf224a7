// Returns the version that the build system defines.
#include "core/base/version.h"

namespace trainctl {
std::string_view version() { return TRAINCTL_VERSION; }
}  // namespace trainctl
