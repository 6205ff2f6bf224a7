// How data is prepared before ranks are started: where files are kept, and the function that receives the progress.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace trainctl {

struct Preparation {
  std::string cache_folder;  // `data.cache_path`; empty: the default folder
  // Receives how much of the work is done, in bytes. Called by any thread, but never by two at a time; may be empty.
  std::function<void(std::int64_t done, std::int64_t total)> progress = {};
};

}  // namespace trainctl
