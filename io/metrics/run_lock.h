// The right to write in a run directory: the folder, and the lock on the file `lock` in it.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace trainctl {

class RunLock {
 public:
  RunLock() = default;
  ~RunLock();
  RunLock(const RunLock&) = delete;
  RunLock& operator=(const RunLock&) = delete;

  // Takes the lock of a folder where its file exists; holds nothing where it does not. Creates and writes nothing.
  // Throws Error{config} where another process holds it, Error{resource} where it cannot be opened.
  void take_existing(const std::string& folder);
  // Creates the folder and the file where they are missing, takes the lock where it is not held yet, and writes this
  // process into the file. Throws as take_existing(), and then leaves nothing of what it made.
  void take(const std::string& folder);
  // Gives the lock back and removes what take() made, as far as nothing else lies there.
  void release_and_remove();
  void release();
  bool held() const { return descriptor_ >= 0; }

 private:
  bool open_and_lock(const std::string& folder, int flags);

  int descriptor_ = -1;
  std::string made_file_;                  // "" where take() found it
  std::vector<std::string> made_folders_;  // the innermost first
};

// The process that writes in a run directory, by its lock; "" where none does. It differs from run to run and host to
// host.
std::string lock_holder(const std::string& folder);

// Whether the process that lock_holder() named still exists; nothing where that cannot be known: it is of another host,
// or none was named. (One of the same number may have taken its place.)
std::optional<bool> holder_exists(const std::string& holder);

// Checks that a run could write there by all that it does at its start: folder, lock, a file. Leaves nothing behind.
// Throws what the run would.
void probe_run_directory(const std::string& folder);

}  // namespace trainctl
