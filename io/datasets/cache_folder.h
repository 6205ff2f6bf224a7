// The folder of the files that trainctl keeps for the user between runs.
#pragma once

#include <string>

namespace trainctl {

// The default folder of caches, in $XDG_CACHE_HOME or ~/.cache; "" if neither XDG_CACHE_HOME nor HOME is set.
std::string default_cache_folder();

}  // namespace trainctl
