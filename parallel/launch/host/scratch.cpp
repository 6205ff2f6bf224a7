// Scratch folders are locked by their owner: a folder that can be locked is abandoned.
#include "parallel/launch/host/scratch.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "core/base/error.h"
#include "core/base/format.h"

namespace trainctl {
namespace {

// Locks a folder and returns the lock, or -1 if another process holds the lock or the folder no longer exists.
int lock_folder(const std::string& path) {
  const int folder = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (folder < 0) return -1;
  struct stat locked {};
  struct stat named {};
  if (flock(folder, LOCK_EX | LOCK_NB) == 0 && fstat(folder, &locked) == 0 && stat(path.c_str(), &named) == 0 &&
      locked.st_ino == named.st_ino && locked.st_uid == geteuid()) {
    return folder;
  }
  close(folder);
  return -1;
}

void remove_abandoned(const std::string& parent, const std::string& prefix) {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(parent, ignored)) {
    if (!entry.path().filename().string().starts_with(prefix)) continue;
    const int lock = lock_folder(entry.path());
    if (lock < 0) continue;
    std::filesystem::remove_all(entry.path(), ignored);
    close(lock);
  }
}

}  // namespace

ScratchFolder::ScratchFolder(const std::string& parent) {
  const std::string prefix = format("trainctl-{}-", geteuid());
  remove_abandoned(parent, prefix);
  while (lock_ < 0) {  // again if another run has removed the new folder as abandoned
    path_ = parent + "/" + prefix + "XXXXXX";
    if (mkdtemp(path_.data()) == nullptr) {
      throw Error(ErrorKind::resource, format("cannot create a folder in {}: {}", parent, std::strerror(errno)),
                  "free some space, or set TMPDIR to a writable folder");
    }
    lock_ = lock_folder(path_);
  }
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
  close(lock_);
}

}  // namespace trainctl
