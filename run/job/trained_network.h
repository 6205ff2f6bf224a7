// A trained network as a user names it: its run, and the checkpoint of it that a command reads.
#pragma once

#include <string>

namespace trainctl {

// A run directory or a checkpoint as it is; of a config its newest run. Throws what load_run_spec() and newest_run()
// do.
std::string run_of(const std::string& path);

// The run's best checkpoint, or its last where none was found best, which is told.
std::string best_of_run(const std::string& run);

// A run directory, a checkpoint of one, or a config, which stands for its newest run.
struct TrainedNetwork {
  std::string run;   // the run directory, whose config.yaml describes the network
  std::string path;  // the run directory or the checkpoint

  // The checkpoint to load: of a run directory the one that best_of_run() chooses.
  std::string checkpoint() const;
};

// Throws Error{config} where the name is of none of these, and as newest_run() does.
TrainedNetwork find_trained(const std::string& name);

}  // namespace trainctl
