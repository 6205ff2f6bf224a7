// The temporary names of files and folders that are being written: ".partial-", process and host of the writer, and the
// final name. They tell whether their writer is still alive.
#pragma once

#include <string>
#include <string_view>

namespace trainctl {

// A temporary name beside `path`, of this process. `part` tells several writers of one process apart.
std::string temporary_name(const std::string& path, std::string_view part = "");

// Removes what processes of this host that are no longer alive have left under temporary names for `path`.
void remove_dead_temporaries(const std::string& path);

// Both: the temporary name to write `path` under, after what dead writers have left for it is gone.
std::string new_temporary_name(const std::string& path);

// Removes everything that lies under a temporary name in a folder. Only for the one that may write there.
void remove_leftovers(const std::string& folder);

}  // namespace trainctl
