// The options of `trainctl launch`, and what it does for each kind of cluster.
#pragma once

#include "cmd/common_options.h"
#include "run/launch/job.h"

namespace trainctl {

struct LaunchOptions {
  CommonOptions common;
  JobOptions job;
  bool submit = false, wait = false;  // SLURM
  bool dockerfile = false;            // Kubernetes
};

// launch slurm|kubernetes|tf-config. Each returns the exit code.
int launch_slurm(LaunchOptions& options);
int launch_kubernetes(LaunchOptions& options);
int launch_tf_config(LaunchOptions& options);

}  // namespace trainctl
