// `cache: memory` and `cache: disk`: keep prepared samples once they have been read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace trainctl {

// Holds rows of equal size, one for each sample. Any thread may fill or find any row.
class SampleCache {
 public:
  virtual ~SampleCache() = default;

  // Returns the row of a sample; null if it is not filled yet. The row may be stored in `memory`, which is the
  // caller's.
  virtual const std::byte* find(std::int64_t sample, std::vector<std::byte>& memory) = 0;
  // Returns the row of a sample for the caller to fill and then publish(); null if the cache will not keep it. The row
  // may be stored in `memory`.
  virtual std::byte* claim(std::int64_t sample, std::vector<std::byte>& memory) = 0;
  virtual void publish(std::int64_t sample, std::vector<std::byte>& memory) = 0;
};

// A function that makes a cache of samples [0, samples); `used` of them are read.
using MakeCache =
    std::function<std::unique_ptr<SampleCache>(std::int64_t samples, std::int64_t used, std::int64_t row_bytes)>;

// Makes a cache in memory, which the system allocates as rows are filled. Throws Error{resource} if `used` rows do not
// fit into the free memory.
std::unique_ptr<SampleCache> memory_cache(std::int64_t samples, std::int64_t used, std::int64_t row_bytes);

// Makes a cache in a file in `folder`, which is shared with the other ranks of this host and the user's later runs. The
// file's name is derived from `key`, a text that contains everything on which the rows depend. Each row has a hash: a
// row that is damaged, or that another process is writing, counts as not filled. Throws Error{resource} if the folder
// cannot be written or `used` rows do not fit into its free space. If the disk becomes full later, the cache logs a
// warning once and keeps no further rows.
std::unique_ptr<SampleCache> disk_cache(const std::string& folder, const std::string& key, std::int64_t samples,
                                        std::int64_t used, std::int64_t row_bytes);

// Throws the error of disk_cache() if there is no space for the rows, and writes nothing.
void check_disk_cache(const std::string& folder, const std::string& key, std::int64_t used, std::int64_t row_bytes);

}  // namespace trainctl
