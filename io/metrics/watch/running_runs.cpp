// Finds the runs that are being trained.
#include "io/metrics/watch/running_runs.h"

#include <utility>

#include "core/base/error.h"
#include "core/base/files.h"

namespace trainctl {
namespace {

constexpr double max_silent_seconds = 24 * 3600;  // a run without an event for this long is no longer listed

}  // namespace

RunningRuns::RunningRuns(std::string folder) : folder_(std::move(folder)) {
  if (is_folder(folder_, {ErrorKind::config})) return;
  throw Error(ErrorKind::config, SourceLocation{folder_}, "there is no such directory",
              "name the directory of a run, or go to where runs are (trainctl run makes runs/<name>)");
}

bool RunningRuns::runs_on(const std::string& directory) {
  auto run = runs_.find(directory);
  if (run == runs_.end()) {
    if (!may_be_running(directory)) return false;
    run = runs_.try_emplace(directory, directory).first;
  }
  run->second.look([](RunEvent) {});
  const RunState state = run->second.state();
  if (state == RunState::silent) return run->second.silent_seconds() < max_silent_seconds;
  return state == RunState::starting || state == RunState::running;
}

std::vector<const WatchedRun*> RunningRuns::look() {
  std::vector<const WatchedRun*> found;
  for (const FolderEntry& entry : list_folder(folder_, {ErrorKind::config})) {
    if (entry.type != FileType::folder && entry.type != FileType::link) continue;
    const std::string directory = folder_ + "/" + entry.name;
    try {
      if (runs_on(directory)) {
        found.push_back(&runs_.at(directory));
      } else {
        runs_.erase(directory);
      }
    } catch (const Error& error) {
      runs_.erase(directory);
      if (refused_.insert(directory).second) problems_.emplace_back(error.what());
    }
  }
  return found;
}

std::vector<std::string> RunningRuns::take_problems() { return std::exchange(problems_, {}); }

}  // namespace trainctl
