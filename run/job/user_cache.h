// Files that are kept for the user between runs, one of each kind for each hardware fingerprint.
#pragma once

#include <functional>
#include <string>

namespace trainctl {

struct CachedFile {
  std::string kind;         // the beginning of its name: "kernels"
  std::string fingerprint;  // of the hardware
  std::string contents;     // what it holds, in messages: "kernel choices"
  std::string remedy;       // what happens without it: "kernels are timed again"
};

// Hands the text of a file to `read`, where there is one. They lie in $XDG_CACHE_HOME/trainctl or ~/.cache/trainctl. A
// file for which `read` throws an Error is set aside, and one that cannot be read left where it is, with a warning.
void load_cached(const CachedFile& file, const std::function<void(const std::string& text)>& read);

// Keeps a file. A cache that cannot be written is no error: what it would hold is found again next time.
void keep_cached(const CachedFile& file, const std::string& text);

}  // namespace trainctl
