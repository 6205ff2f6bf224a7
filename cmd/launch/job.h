// A run that something else than this command starts later: on how many nodes and ranks, by which command.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cmd/common_options.h"

namespace trainctl {

struct RunSpec;

// What the command line says of a job, wherever it runs.
struct JobOptions {
  CommonOptions common;
  int nodes = 1;  // in Kubernetes: workers
  int gpus_per_node = 0;
  std::string ranks;  // as --ranks
  std::optional<int> cpus_per_task;
  std::string run_directory;
  // SLURM
  std::string time, array;
  std::vector<std::string> sbatch;
  bool submit = false, wait = false;
  // Kubernetes
  std::string image;  // empty: trainctl:<version>
  std::string volume = "workspace";
  bool dockerfile = false;
};

// The number of ranks of the job: as the options state it, else one rank for each GPU. Throws Error{config} if neither
// is known, if the ranks cannot be spread over the nodes, or if the network, the batch or the strategy does not work on
// this number of ranks; without the data, only what the config alone shows is checked.
int checked_ranks(const JobOptions& options, const RunSpec& spec);

// The arguments of `trainctl run` in the job: the ranks are those that the job's hosts have slots for. `settings` come
// after those of the command line.
std::vector<std::string> run_arguments(const JobOptions& options, const std::vector<std::string>& settings);

// The words of this command, as it was given.
std::vector<std::string> this_command();

// launch slurm|kubernetes|tf-config.
int launch_slurm(JobOptions& options);
int launch_kubernetes(JobOptions& options);
int launch_tf_config(JobOptions& options);

}  // namespace trainctl
