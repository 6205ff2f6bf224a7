// Finds the run and the checkpoint of a trained network that a user names.
#pragma once

#include <string>

namespace trainctl {

// Returns a run directory or a checkpoint as it is, and the newest run of a config. Throws the errors of
// load_run_spec() and newest_run().
std::string run_of(const std::string& path);

// Returns the run's best checkpoint, or its last one if there is no best one, which is logged.
std::string best_of_run(const std::string& run);

// A network that was named by a run directory, a checkpoint of a run, or a config, which means its newest run.
struct TrainedNetwork {
  std::string run;   // the run directory, whose config.yaml describes the network
  std::string path;  // the run directory or the checkpoint

  // The checkpoint to load: `path`, or the one that best_of_run() chooses in a run directory.
  std::string checkpoint() const;
};

// Throws Error{config} if the name is none of these, and as newest_run() does.
TrainedNetwork find_trained(const std::string& name);

}  // namespace trainctl
