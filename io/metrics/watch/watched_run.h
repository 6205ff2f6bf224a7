// A run that another process trains, perhaps on another host, as far as its directory shows it.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "io/metrics/watch/growing_file.h"
#include "io/metrics/watch/read_events.h"

namespace trainctl {

enum class RunState {
  starting,  // its process is there, or may be, and has not begun to train
  running,
  silent,  // it has given no sign of life for so long that it may be dead, and its process is not of this host
  gone,    // its process, of this host, has ended without saying so
  ended,   // it has said how it ended
};

// "starting", "running", "silent", "gone", "ended".
std::string_view name_of(RunState state);

class WatchedRun {
 public:
  // Reads nothing yet. Throws Error{config} where this is no directory of a run.
  explicit WatchedRun(std::string directory);

  // Looks at the directory again. `seen` is called behind every new event, with the record as it is then, but not for
  // steps that newer ones follow in great number; with `anew` where the record begins anew. Throws Error{config} where
  // the directory is gone, or cannot be a run's that this version writes.
  void look(const std::function<void(RunEvent)>& seen);

  const std::string& directory() const { return directory_; }
  const RunRecord& record() const { return record_; }
  RunState state() const { return state_; }
  // The process that trains, as the lock names it: "process 123 on node1"; "" where there is none.
  const std::string& process() const { return process_; }
  // Seconds since the last event that was seen, or since another process took the lock.
  double silent_seconds() const;

 private:
  RunEvent add(const std::string& line);
  void find_state(const std::optional<bool>& process_exists);

  std::string directory_;
  GrowingFile file_;
  RunRecord record_;
  RunState state_ = RunState::starting;
  std::string process_;
  double locked_ = 0;     // when its lock was taken, in seconds since 1970
  double last_sign_ = 0;  // seconds_now() at the last sign of life; 0: none was seen
};

// Whether a directory holds a run that may go on: fast also where its record is long. False where it holds none.
bool may_be_running(const std::string& directory);

}  // namespace trainctl
