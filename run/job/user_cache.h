// Loads and stores files that are kept for the user between runs, one of each kind for each hardware fingerprint.
#pragma once

#include <functional>
#include <string>

namespace trainctl {

struct CachedFile {
  std::string kind;         // the beginning of its name: "kernels"
  std::string fingerprint;  // of the hardware
  std::string contents;     // its contents as messages call them: "kernel choices"
  std::string remedy;       // what happens without it: "kernels are timed again"
};

// Passes the text of a file to `read`, if there is such a file in $XDG_CACHE_HOME/trainctl or ~/.cache/trainctl.
// Renames a file for which `read` throws an Error, and leaves one that cannot be read as it is; both with a warning.
void load_cached(const CachedFile& file, const std::function<void(const std::string& text)>& read);

// Stores a file. A cache that cannot be written is not an error: its contents are found again next time.
void keep_cached(const CachedFile& file, const std::string& text);

}  // namespace trainctl
