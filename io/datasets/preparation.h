// How data is prepared before ranks are started: where files are kept, and who is told about the progress.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace trainctl {

struct Preparation {
  std::string cache_folder;  // `data.cache_path`; empty: the default folder
  // Told how much of the work is done, in bytes, from any thread but never from two at a time; may be empty.
  std::function<void(std::int64_t done, std::int64_t total)> progress = {};
};

}  // namespace trainctl
