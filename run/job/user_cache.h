// Loads and stores files that are kept for the user between runs, one of each kind for each hardware fingerprint.
#pragma once

#include <functional>
#include <string>

namespace trainctl {

struct CachedFile {
  std::string kind;         // the beginning of the file's name: "kernels"
  std::string fingerprint;  // fingerprint of the hardware
  std::string contents;     // name of the contents in messages: "kernel choices"
  std::string remedy;       // what happens without the file: "kernels are timed again"
};

// Passes the text of a file to `read`, if there is such a file in $XDG_CACHE_HOME/trainctl or ~/.cache/trainctl.
// Logs a warning if the file cannot be read, or if `read` throws an Error; in the second case the file is renamed.
void load_cached(const CachedFile& file, const std::function<void(const std::string& text)>& read);

// Stores a file. A cache that cannot be written is not an error: the next run computes the contents again.
void keep_cached(const CachedFile& file, const std::string& text);

}  // namespace trainctl
