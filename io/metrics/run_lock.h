// The exclusive right to write in a run directory: the folder, and a lock on the file `lock` in it. The process that
// writes there holds this lock: rank 0. The run's supervisor holds another one (core/base/supervisor_lock.h), so that
// no other run takes the directory between two starts of its ranks.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/generation.h"

namespace trainctl {

class RunLock {
 public:
  // A lock that an earlier generation of the same run holds is taken over: ranks on a host that was cut off from the
  // others may still run, and must not write in the directory any more (require_held()).
  // If `yields`, a folder whose ranks may start again (absent_supervisor.h) is not taken: MayStartAgain is thrown.
  explicit RunLock(Generation generation = {}, bool yields = false)
      : generation_(std::move(generation)), yields_(yields) {}
  ~RunLock();
  RunLock(const RunLock&) = delete;
  RunLock& operator=(const RunLock&) = delete;

  // Takes the lock of a folder if the lock file exists; otherwise no lock is held. Creates and writes no files. Throws
  // Error{config} if another process holds the lock, or the supervisor of another run keeps the folder, and
  // Error{resource} if the file cannot be opened.
  void take_existing(const std::string& folder);
  // Creates the folder and the file if they are missing, takes the lock if it is not held yet, and writes this process
  // into the file. Throws the errors of take_existing(), after removing the files and folders that it has created.
  void take(const std::string& folder);
  // Releases the lock, and removes the file and the empty folders that take() has created.
  void release_and_remove();
  void release();
  bool held() const { return descriptor_ >= 0; }
  // Throws Error{peer} if a later generation of the run has taken over the lock.
  void require_held(const std::string& folder) const;

 private:
  bool open_and_lock(const std::string& folder, int flags);
  bool take_over(const std::string& folder, int other);
  void write_holder() const;

  Generation generation_;
  bool yields_;

  int descriptor_ = -1;
  std::string created_file_;                  // "" if the file existed before take()
  std::vector<std::string> created_folders_;  // the innermost first
};

// Returns the process that writes in a run directory, as its lock file names it; "" if there is none. The text differs
// between processes and hosts.
std::string lock_holder(const std::string& folder);

// Returns the start of a run that has locked the folder last, as its lock file names it; an empty one if there is none.
Generation lock_generation(const std::string& folder);

// Whether the process that lock_holder() returned still exists (another process may have got the same number). No value
// if that is unknown: the process is on another host, or the text is empty.
std::optional<bool> holder_exists(const std::string& holder);

// Checks that a run could write in the directory, by creating the folder, the lock and a file, which are removed again.
// Throws the same errors as the start of a run.
void probe_run_directory(const std::string& folder);

}  // namespace trainctl
