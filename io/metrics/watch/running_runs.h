// The runs in a folder that other processes train at present.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "io/metrics/watch/watched_run.h"

namespace trainctl {

class RunningRuns {
 public:
  // Throws Error{config} where there is no such folder.
  explicit RunningRuns(std::string folder);

  // Looks again, also for new ones. Those that are starting or running, and those that have been silent for less than a
  // day, in the order of their names.
  std::vector<const WatchedRun*> look();

  // What is wrong with directories of runs that cannot be read, each told once.
  std::vector<std::string> take_problems();

 private:
  bool runs_on(const std::string& directory);

  std::string folder_;
  std::map<std::string, WatchedRun> runs_;
  std::set<std::string> refused_;
  std::vector<std::string> problems_;
};

}  // namespace trainctl
