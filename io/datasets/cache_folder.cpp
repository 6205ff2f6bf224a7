// Finds the folder of caches in the environment.
#include "io/datasets/cache_folder.h"

#include <cstdlib>

namespace trainctl {

std::string default_cache_folder() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  if (cache != nullptr && *cache != 0) return std::string(cache) + "/trainctl";
  const char* home = std::getenv("HOME");
  return home != nullptr && *home != 0 ? std::string(home) + "/.cache/trainctl" : "";
}

}  // namespace trainctl
