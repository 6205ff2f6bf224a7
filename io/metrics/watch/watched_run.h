// Watches a run that another process trains, perhaps on another host, by the files in its directory.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "io/metrics/watch/growing_file.h"
#include "io/metrics/watch/read_events.h"

namespace trainctl {

enum class RunState {
  starting,  // its process or its supervisor exists, or may exist, and has not begun to train, or to train again
  running,
  silent,  // its process is on another host, and has written no event for so long that it may have ended
  gone,    // its process was on this host and has ended without an end event
  ended,   // its record has an end event
};

// Returns "starting", "running", "silent", "gone" or "ended".
std::string_view name_of(RunState state);

class WatchedRun {
 public:
  // Does not read the record yet. Throws Error{config} if this is not the directory of a run.
  explicit WatchedRun(std::string directory);

  // Reads the directory again. Calls `seen` after every new event, when record() includes the event, except for steps
  // that many newer steps follow. Calls it with `anew` if the record was replaced. Throws Error{config} if the
  // directory was removed, or is not a run's directory in the format of this version.
  void look(const std::function<void(RunEvent)>& seen);

  const std::string& directory() const { return directory_; }
  const RunRecord& record() const { return record_; }
  RunState state() const { return state_; }
  // The process that trains, as the lock file names it: "process 123 on node1"; "" if there is none. While no rank
  // runs, the supervisor that starts the ranks again.
  const std::string& process() const { return process_; }
  // Seconds since the last event, or since another process took the lock.
  double silent_seconds() const;

 private:
  struct Trainer;
  static Trainer trainer_in(const std::string& directory);
  friend bool may_be_running(const std::string& directory);

  RunEvent add(const std::string& line);
  void find_state(const Trainer& trainer);

  std::string directory_;
  GrowingFile file_;
  RunRecord record_;
  RunState state_ = RunState::starting;
  std::string process_;
  double locked_ = 0;         // time at which the lock was taken, in seconds since 1970
  double last_activity_ = 0;  // seconds_now() at the last event or change of the lock; 0: there was none
};

// Whether a directory holds a run that may be training. Reads only the end of its record. False if it holds no run.
bool may_be_running(const std::string& directory);

}  // namespace trainctl
