// Locks the file of a run's supervisor by flock(), and reads it.
#include "core/base/supervisor_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <utility>

#include "core/base/format.h"
#include "core/base/generation.h"

namespace trainctl {
namespace {

std::string path_of(const std::string& run_directory) { return run_directory + "/supervisor"; }

// Opens the file if it is a regular one; returns -1 otherwise.
int open_regular(const std::string& path, int flags) {
  int descriptor = -1;
  do {
    descriptor = open(path.c_str(), flags | O_NONBLOCK | O_CLOEXEC, 0666);
  } while (descriptor < 0 && errno == EINTR);
  struct stat status {};
  if (descriptor >= 0 && (fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode))) {
    close(descriptor);
    return -1;
  }
  return descriptor;
}

// Returns 0, or the errno value of the failure.
int lock(int descriptor, int operation) {
  int error = 0;
  do {
    error = flock(descriptor, operation | LOCK_NB) == 0 ? 0 : errno;
  } while (error == EINTR);
  return error;
}

// Whether the path still names the opened file: someone may have removed it.
bool is_same_file(int descriptor, const std::string& path) {
  struct stat opened {
  }, named{};
  return fstat(descriptor, &opened) == 0 && stat(path.c_str(), &named) == 0 && opened.st_dev == named.st_dev &&
         opened.st_ino == named.st_ino;
}

std::string text_of(int descriptor) {
  std::array<char, 1024> text{};
  const ssize_t bytes = pread(descriptor, text.data(), text.size(), 0);
  return {text.data(), static_cast<std::size_t>(std::max<ssize_t>(bytes, 0))};
}

}  // namespace

std::string host_name() {
  std::array<char, HOST_NAME_MAX + 1> name{};
  gethostname(name.data(), HOST_NAME_MAX);
  return name.data();
}

std::string process_on_host() { return format("process {} on {}", getpid(), host_name()); }

std::string host_of_launch(const std::string& launch) {
  const std::size_t time = launch.rfind('-');
  const std::size_t process = time == std::string::npos || time == 0 ? time : launch.rfind('-', time - 1);
  return time == 0 || process == std::string::npos ? "" : launch.substr(0, process);
}

bool is_launch_of_this_host(const std::string& launch) { return host_of_launch(launch) == host_name(); }

bool SupervisorLock::take(const std::string& run_directory, const std::string& launch) {
  if (descriptor_ >= 0 && directory_ == run_directory && is_same_file(descriptor_, path_of(run_directory))) return true;
  release();
  const int descriptor = open_regular(path_of(run_directory), O_RDWR | O_CREAT);
  if (descriptor < 0) return false;
  const std::string text = process_on_host() + "\n" + to_line({launch, 0});
  // The text is written before the rest of an older one is cut off, so that a reader always sees a name.
  if (lock(descriptor, LOCK_EX) != 0 || !is_same_file(descriptor, path_of(run_directory)) ||
      pwrite(descriptor, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size()) ||
      ftruncate(descriptor, static_cast<off_t>(text.size())) != 0) {
    close(descriptor);
    return false;
  }
  fsync(descriptor);  // other hosts of a file system read the name; some file systems cannot do it
  descriptor_ = descriptor;
  directory_ = run_directory;
  return true;
}

void SupervisorLock::release() {
  if (descriptor_ >= 0) close(std::exchange(descriptor_, -1));
}

std::optional<RunningSupervisor> supervisor_of(const std::string& run_directory) {
  const int descriptor = open_regular(path_of(run_directory), O_RDONLY);
  if (descriptor < 0) return {};
  const bool is_held = lock(descriptor, LOCK_SH) == EWOULDBLOCK;
  const std::string text = is_held ? text_of(descriptor) : "";
  close(descriptor);
  if (!is_held) return {};
  return RunningSupervisor{text.substr(0, text.find('\n')), generation_in(text).launch};
}

std::string last_supervisor_of(const std::string& run_directory) {
  const int descriptor = open_regular(path_of(run_directory), O_RDONLY);
  if (descriptor < 0) return "";
  const std::string text = text_of(descriptor);
  close(descriptor);
  return generation_in(text).launch;
}

}  // namespace trainctl
