// Locks a file by flock.
#include "io/datasets/text/cache_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "core/base/error.h"
#include "core/base/format.h"
#include "core/base/log.h"

namespace trainctl {

CacheLock::CacheLock(const std::string& path, const std::function<void()>& waits) : path_(path) {
  descriptor_ = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (descriptor_ < 0) {
    throw Error(ErrorKind::resource, SourceLocation{path},
                "this file of the cache cannot be written: " + std::generic_category().message(errno),
                "set `data.cache_path` to a folder that can be written");
  }
  int flags = LOCK_EX | LOCK_NB;
  while (flock(descriptor_, flags) != 0) {
    if (errno == EINTR) continue;
    if (errno == EWOULDBLOCK) {
      waits();
      flags = LOCK_EX;
      continue;
    }
    log::warning(
        format("{}: {}: several processes may prepare the same data", path, std::generic_category().message(errno)));
    return;
  }
}

// A process that waits for a lock whose file is removed gets the lock nevertheless; one that comes later makes a new
// file. Both then find what this process made, or make it again: each writes under a temporary name of its own.
CacheLock::~CacheLock() {
  unlink(path_.c_str());
  close(descriptor_);
}

}  // namespace trainctl
