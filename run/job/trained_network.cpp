// Finds the run that a name belongs to.
#include "run/job/trained_network.h"

#include "core/base/error.h"
#include "core/base/files.h"
#include "io/metrics/find_run.h"
#include "run/job/best_checkpoint.h"

namespace trainctl {

std::string TrainedNetwork::checkpoint() const { return exists(path + "/checkpoints") ? best_of_run(path) : path; }

TrainedNetwork find_trained(const std::string& name) {
  TrainedNetwork found{"", run_of(name)};
  found.run = run_of_checkpoint(found.path);
  if (!found.run.empty()) return found;
  throw Error(ErrorKind::config, found.path + " is no run directory, no checkpoint of one and no config",
              "name a run directory such as runs/NAME, or a folder in its `checkpoints`");
}

}  // namespace trainctl
