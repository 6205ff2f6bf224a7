// Creates the folder of a run and locks it.
#include "io/metrics/run_lock.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/format.h"
#include "core/base/log.h"
#include "core/base/supervisor_lock.h"
#include "io/checkpoint/atomic_file.h"
#include "io/metrics/absent_supervisor.h"

namespace trainctl {
namespace fs = std::filesystem;
namespace {

[[noreturn]] void throw_unwritable(const std::string& folder, int error) {
  throw Error(ErrorKind::resource, SourceLocation{folder}, "cannot write: " + std::generic_category().message(error),
              "choose a run directory that can be written (--run-dir)");
}

// Returns the text of a lock file: a line with the process that holds the lock, and a line with its generation if a
// supervisor has started it.
std::string text_of(int descriptor) {
  char text[1024];
  const ssize_t bytes = pread(descriptor, text, sizeof text, 0);
  return {text, static_cast<std::size_t>(std::max<ssize_t>(bytes, 0))};
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

// Returns the text of the lock file of a folder; "" if there is no such file, or it cannot be read.
std::string lock_text(const std::string& folder) {
  constexpr std::int64_t max_bytes = 4096;
  try {
    return read_file(folder + "/lock", max_bytes);
  } catch (const Error&) {
    return "";
  }
}

// `holder`: the process that uses the directory, in words; "" if it is unknown.
[[noreturn]] void throw_in_use(const std::string& folder, const std::string& holder) {
  throw Error(ErrorKind::config, SourceLocation{folder},
              "another trainctl is running in this directory" + (holder.empty() ? "" : ": " + holder),
              "wait until it has ended, or choose another directory (--run-dir)");
}

// Throws if the supervisor of another run keeps the folder. Its own ranks may be about to start again.
void require_no_other_supervisor(const std::string& folder, const Generation& own) {
  const std::optional<RunningSupervisor> supervisor = supervisor_of(folder);
  if (!supervisor || (!own.launch.empty() && supervisor->launch == own.launch)) return;
  throw_in_use(folder, supervisor->process + ", which starts its ranks again");
}

// Returns this folder and its parents that do not exist, the innermost first.
std::vector<std::string> missing_folders(const std::string& folder) {
  std::vector<std::string> missing;
  std::error_code error;
  for (fs::path path = folder; !path.empty() && path != path.root_path(); path = path.parent_path()) {
    if (fs::symlink_status(path, error).type() != fs::file_type::not_found) break;
    if (path.has_filename()) missing.push_back(path);
  }
  return missing;
}

bool is_regular(int descriptor) {
  struct stat status {};
  return fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode);
}

// Whether the file of this name is still the one that was opened: a process that released its lock may have removed it.
// Empty, with the reason in errno, if the system does not tell.
std::optional<bool> is_same_file(int descriptor, const std::string& file) {
  struct stat opened {
  }, named{};
  if (fstat(descriptor, &opened) != 0) return {};
  if (stat(file.c_str(), &named) == 0) return opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
  return errno == ENOENT ? std::optional(false) : std::nullopt;
}

}  // namespace

std::string lock_holder(const std::string& folder) { return first_line(lock_text(folder)); }

Generation lock_generation(const std::string& folder) { return generation_in(lock_text(folder)); }

std::optional<bool> holder_exists(const std::string& holder) {
  int process = 0, host_at = 0;
  if (std::sscanf(holder.c_str(), "process %d on %n", &process, &host_at) != 1 || host_at == 0) return std::nullopt;
  if (process <= 0 || holder.substr(static_cast<std::size_t>(host_at)) != host_name()) return std::nullopt;
  return kill(process, 0) == 0 || errno == EPERM;
}

RunLock::~RunLock() { release(); }

void RunLock::release() {
  if (held()) close(std::exchange(descriptor_, -1));
}

// Opens and locks the file. Returns false if it does not exist and `flags` do not create it.
bool RunLock::open_and_lock(const std::string& folder, int flags) {
  const std::string file = folder + "/lock";
  std::string unlockable;  // why the file cannot be locked; "" if it is locked
  for (;;) {
    descriptor_ = open(file.c_str(), flags | O_RDWR | O_NONBLOCK | O_CLOEXEC, 0666);
    if (descriptor_ < 0 && errno == EINTR) continue;
    if (descriptor_ < 0 && errno == ENOENT && (flags & O_CREAT) == 0) return false;
    if (descriptor_ < 0) throw_unwritable(folder, errno);
    if (!is_regular(descriptor_)) {
      release();
      throw Error(ErrorKind::resource, SourceLocation{file},
                  "is not a regular file and cannot be used as the lock of a run",
                  "remove it, or choose another run directory (--run-dir)");
    }
    int error = 0;
    do {
      error = flock(descriptor_, LOCK_EX | LOCK_NB) == 0 ? 0 : errno;
    } while (error == EINTR);
    if (error == EWOULDBLOCK) {
      const int other = std::exchange(descriptor_, -1);
      if (take_over(folder, other)) return true;
      try {
        throw_in_use(folder, first_line(text_of(other)));
      } catch (...) {
        close(other);
        throw;
      }
    }
    unlockable = error == 0 ? "" : std::generic_category().message(error);
    if (is_same_file(descriptor_, file) == true) break;
    release();
  }
  try {
    require_no_other_supervisor(folder, generation_);
    const Generation last = generation_in(text_of(descriptor_));
    if (yields_ && last.launch != generation_.launch && may_start_again(folder, last)) {
      throw MayStartAgain(folder, last);
    }
  } catch (...) {
    release();
    throw;
  }
  if (!unlockable.empty()) {
    log::warning(format("{}: {}: a second run in this directory cannot be prevented", file, unlockable));
  }
  return true;
}

// Replaces the lock file by one that this process holds, if an earlier generation holds the lock in the file `other`,
// which is closed then. Returns false if it does not.
bool RunLock::take_over(const std::string& folder, int other) {
  if (!generation_.follows(generation_in(text_of(other)))) return false;
  const std::string file = folder + "/lock", temporary = file + ".new";
  descriptor_ = open(temporary.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (descriptor_ < 0 || flock(descriptor_, LOCK_EX | LOCK_NB) != 0) {
    release();
    return false;
  }
  write_holder();
  if (rename(temporary.c_str(), file.c_str()) != 0) {
    release();
    unlink(temporary.c_str());
    return false;
  }
  log::warning(format("{}: {} of an earlier start of this run has not ended yet: it will not save any more", folder,
                      first_line(text_of(other))));
  close(other);
  return true;
}

void RunLock::require_held(const std::string& folder) const {
  if (!held()) return;
  const std::optional<bool> same = is_same_file(descriptor_, folder + "/lock");
  if (!same) throw_unwritable(folder, errno);
  if (*same) return;
  throw Error(
      ErrorKind::peer, SourceLocation{folder},
      format("a later start of this run has taken over the directory ({}), so that this one ends without saving",
             lock_holder(folder)));
}

// Writes this process and its generation into the lock file.
void RunLock::write_holder() const {
  const std::string text = process_on_host() + "\n" + to_line(generation_);
  if (ftruncate(descriptor_, 0) != 0 || pwrite(descriptor_, text.data(), text.size(), 0) < 0) {
    log::debug("the process could not be written into the lock file");
  }
}

void RunLock::take_existing(const std::string& folder) { open_and_lock(folder, 0); }

void RunLock::take(const std::string& folder) {
  try {
    if (!held() && !open_and_lock(folder, 0)) {
      created_folders_ = missing_folders(folder);
      create_folders(folder);
      created_file_ = folder + "/lock";
      open_and_lock(folder, O_CREAT);
    }
    write_holder();
  } catch (...) {
    release_and_remove();
    throw;
  }
}

void RunLock::release_and_remove() {
  if (held() && !created_file_.empty() && is_same_file(descriptor_, created_file_) == true)
    unlink(created_file_.c_str());
  created_file_.clear();
  for (const std::string& folder : created_folders_) rmdir(folder.c_str());  // fails if the folder is not empty
  created_folders_.clear();
  release();
}

void probe_run_directory(const std::string& folder) {
  RunLock lock;
  lock.take(folder);
  const std::string file = folder + "/.trial";
  try {
    write_file(file, std::string(4096, ' '));
  } catch (...) {
    lock.release_and_remove();
    throw;
  }
  unlink(file.c_str());
  lock.release_and_remove();
}

}  // namespace trainctl
