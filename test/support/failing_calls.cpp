// Replacements of pread and readdir, of which the test lets a chosen call fail, and of flock.
#include "test/support/failing_calls.h"

#include <dirent.h>
#include <dlfcn.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

namespace {

struct Countdown {
  std::atomic<int> calls{0}, failing{0};

  bool fails() { return ++calls == failing; }
  int restart(int k) {
    failing = k;
    return calls.exchange(0);
  }
};

Countdown preads, readdirs;
std::atomic<bool> flock_fails{false};

}  // namespace

namespace trainctl::test {

int fail_pread(int k) { return preads.restart(k); }
int fail_readdir(int k) { return readdirs.restart(k); }
void fail_flock(bool fails) { flock_fails = fails; }

}  // namespace trainctl::test

extern "C" ssize_t pread(int descriptor, void* to, size_t bytes, off_t offset) {
  if (preads.fails()) {
    errno = EIO;
    return -1;
  }
  return syscall(SYS_pread64, descriptor, to, bytes, offset);
}

extern "C" int flock(int descriptor, int operation) noexcept {
  if (flock_fails) {
    errno = ENOLCK;
    return -1;
  }
  return static_cast<int>(syscall(SYS_flock, descriptor, operation));
}

extern "C" dirent* readdir(DIR* folder) {
  static const auto real = reinterpret_cast<dirent* (*)(DIR*)>(dlsym(RTLD_NEXT, "readdir"));
  if (readdirs.fails()) {
    errno = EIO;
    return nullptr;
  }
  return real(folder);
}
