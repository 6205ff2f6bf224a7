// A job that a cluster starts later: its nodes, its ranks and its command.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace trainctl {

struct BatchJob;
struct GivenConfig;
struct MpiJob;
struct RunSpec;

// The properties of a job, for every kind of cluster.
struct JobOptions {
  int nodes = 1;  // in Kubernetes: workers
  int gpus_per_node = 0;
  std::string ranks;  // the value of --ranks
  std::optional<int> cpus_per_task;
  std::string run_directory;
  // SLURM
  std::string time, array;
  std::vector<std::string> sbatch;
  // Kubernetes
  std::string image;  // empty: trainctl:<version>
  std::string volume = "workspace";
};

// Returns the number of ranks of the job: the one in the options, else one for each GPU. Throws Error{config} if
// neither is given, if the ranks cannot be spread over the nodes, or if the network, the batch or the strategy does not
// work on this number of ranks, which is checked only if the data or its description is available.
int checked_ranks(const JobOptions& options, const RunSpec& spec);

// Returns the arguments of `trainctl run` in the job, which starts a rank for each slot of the job's hosts. `settings`
// follow the settings of the command line.
std::vector<std::string> run_arguments(const GivenConfig& given, const JobOptions& options,
                                       const std::vector<std::string>& settings);

// Returns the arguments of this process, the first one being "trainctl".
std::vector<std::string> this_command();

// Loads the config and makes a batch job of SLURM out of it. Throws Error{config} as checked_ranks() does, and if the
// options are not those of one job.
BatchJob batch_job(GivenConfig& given, const JobOptions& options);

// Loads the config and makes an MPIJob of Kubeflow's operator out of it. Throws Error{config} as checked_ranks() does,
// if a path is outside of the volume, or if the ranks cannot be divided evenly among the workers.
MpiJob mpi_job(GivenConfig& given, const JobOptions& options);

}  // namespace trainctl
