// Tells whether a folder whose name others may know belongs to this user.
#pragma once

#include <sys/stat.h>
#include <unistd.h>

#include <string>

namespace trainctl {

// Whether the path is a folder of this user, and no link.
inline bool is_own_folder(const std::string& path) {
  struct stat status {};
  return lstat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == geteuid();
}

}  // namespace trainctl
