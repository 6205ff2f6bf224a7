// A lock that one process at a time holds while it makes a file of the cache.
#pragma once

#include <functional>
#include <string>

namespace trainctl {

class CacheLock {
 public:
  // Waits for the lock `path`, a file that exists while a process holds the lock or waits for it. Calls `waits` once if
  // another process holds it. A process that ends releases its lock. Throws Error{resource} if the file cannot be made.
  // If the file system has no locks, logs a warning and continues without one.
  CacheLock(const std::string& path, const std::function<void()>& waits);
  ~CacheLock();
  CacheLock(const CacheLock&) = delete;
  CacheLock& operator=(const CacheLock&) = delete;

 private:
  std::string path_;
  int descriptor_ = -1;
};

}  // namespace trainctl
