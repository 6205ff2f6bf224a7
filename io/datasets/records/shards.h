// The files that hold a data set in pieces, named by one path.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace trainctl {

// The most files that braces may name.
inline constexpr std::size_t most_shards = 100'000;

// The files that `path` names, each once, in bytewise order: the file of that name; the files in the folder of that
// name for which `belongs(name)`; or a pattern with *, ? and [...] as the shell has them, and with braces that name
// alternatives {a,b} or numbers {000..127}. Throws Error{data} where there are none.
std::vector<std::string> shard_files(const std::string& path, const std::function<bool(const std::string&)>& belongs);

}  // namespace trainctl
