// A trained network as a user names it: what commands read that need no training data.
#pragma once

#include <string>

namespace trainctl {

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
