// Finds the runs in a folder that other processes are training.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "io/metrics/watch/watched_run.h"

namespace trainctl {

class RunningRuns {
 public:
  // Throws Error{config} if there is no such folder.
  explicit RunningRuns(std::string folder);

  // Reads the folder and its runs again. Returns the runs that are starting or running, and those without an event for
  // less than a day, in the order of their names.
  std::vector<const WatchedRun*> look();

  // Returns new error texts on directories that cannot be read; each directory is reported once.
  std::vector<std::string> take_problems();

 private:
  bool runs_on(const std::string& directory);

  std::string folder_;
  std::map<std::string, WatchedRun> runs_;
  std::set<std::string> refused_;
  std::vector<std::string> problems_;
};

}  // namespace trainctl
