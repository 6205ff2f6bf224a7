// Finds the files of a data set that one path names.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace trainctl {

// The largest number of files that braces may name.
inline constexpr std::size_t max_shards = 100'000;

// Returns the files that `path` names, each once, in bytewise order. `path` is a file; a folder, whose files with
// belongs(name) are returned; or a pattern with the shell's wildcards *, ? and [...], and with braces for alternatives
// {a,b} or numbers {000..127}. Throws Error{data} if there are no files.
std::vector<std::string> shard_files(const std::string& path, const std::function<bool(const std::string&)>& belongs);

}  // namespace trainctl
