// `cache: memory` and `cache: disk`: prepared samples are kept from their first reading on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace trainctl {

// Rows of equal size, one for each sample. Any thread may fill or find any row.
class SampleCache {
 public:
  virtual ~SampleCache() = default;

  // The row of a sample; null while it is not filled. It may lie in `memory`, which is the caller's.
  virtual const std::byte* find(std::int64_t sample, std::vector<std::byte>& memory) = 0;
  // The row for the caller to fill and then publish(); null where it is not wanted. It may lie in `memory`.
  virtual std::byte* claim(std::int64_t sample, std::vector<std::byte>& memory) = 0;
  virtual void publish(std::int64_t sample, std::vector<std::byte>& memory) = 0;
};

// Makes a cache of samples [0, samples), of which `used` are read.
using MakeCache =
    std::function<std::unique_ptr<SampleCache>(std::int64_t samples, std::int64_t used, std::int64_t row_bytes)>;

// A cache in memory, which the system provides as rows are filled. Throws Error{resource} where `used` rows do not fit
// into the free memory.
std::unique_ptr<SampleCache> memory_cache(std::int64_t samples, std::int64_t used, std::int64_t row_bytes);

// A cache in a file below `folder`, for the user's next runs and the other ranks of this host too. Its name follows
// from `key`, a text of all that the rows depend on. Each row has a hash: one that is damaged, or that another process
// is writing, counts as not filled. Throws Error{resource} where the folder cannot be written or `used` rows do not fit
// into its free space; where the disk gets full later, a warning says so once and further rows are not kept.
std::unique_ptr<SampleCache> disk_cache(const std::string& folder, const std::string& key, std::int64_t samples,
                                        std::int64_t used, std::int64_t row_bytes);

// Throws as disk_cache() does where there is no room for its rows, and writes nothing.
void check_disk_cache(const std::string& folder, const std::string& key, std::int64_t used, std::int64_t row_bytes);

// Where caches lie by default: below $XDG_CACHE_HOME or ~/.cache; "" where no folder is the user's.
std::string default_cache_folder();

}  // namespace trainctl
