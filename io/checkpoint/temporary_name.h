// Temporary names of files and folders that are being written: ".partial-", process and host of the writer, and the
// final name. Other processes can check with such a name whether the writer still runs.
#pragma once

#include <string>
#include <string_view>

namespace trainctl {

// Returns a temporary name of this process in the folder of `path`. `writer_suffix` distinguishes several writers of
// one process.
std::string temporary_name(const std::string& path, std::string_view writer_suffix = "");

// Removes files and folders with temporary names for `path` whose writers ran on this host and have ended.
void remove_dead_temporaries(const std::string& path);

// Removes the files and folders for `path` whose writers have ended, as remove_dead_temporaries() does, and returns the
// temporary name for writing it.
std::string new_temporary_name(const std::string& path);

// Removes everything with a temporary name in a folder. The caller must be the only writer there.
void remove_leftovers(const std::string& folder);

}  // namespace trainctl
