// Finds the run that a name belongs to, and its best checkpoint.
#include "run/job/trained_network.h"

#include <filesystem>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/format.h"
#include "core/base/log.h"
#include "io/metrics/find_run.h"
#include "run/run_spec.h"

namespace trainctl {

std::string run_of(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return path;
  const RunSpec spec = load_run_spec(path);
  return newest_run(spec.name, Value<RunSpec>::write(spec), path).path;
}

std::string best_of_run(const std::string& run) {
  const std::string best = run + "/checkpoints/best", last = run + "/checkpoints/last";
  std::error_code ignored;
  if (!std::filesystem::is_directory(run, ignored)) {
    throw Error(ErrorKind::data, SourceLocation{run}, "there is no run directory of this name",
                "give a folder that `trainctl run` has made, such as runs/NAME");
  }
  if (std::filesystem::is_directory(best, ignored)) return best;
  if (!std::filesystem::is_directory(last, ignored)) return run;
  log::info(format("{} has no best checkpoint: its last one is read", run));
  return last;
}

std::string TrainedNetwork::checkpoint() const { return exists(path + "/checkpoints") ? best_of_run(path) : path; }

TrainedNetwork find_trained(const std::string& name) {
  TrainedNetwork found{"", run_of(name)};
  found.run = run_of_checkpoint(found.path);
  if (!found.run.empty()) return found;
  throw Error(ErrorKind::config, found.path + " is not a run directory, a checkpoint of a run or a config",
              "give a run directory such as runs/NAME, or a folder in its `checkpoints`");
}

}  // namespace trainctl
