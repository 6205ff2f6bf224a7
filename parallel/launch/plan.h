// LaunchPlan: how many ranks run on which hosts, and the command that starts them; decided before anything is started.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "parallel/comm/environment.h"
#include "parallel/launch/host/cores.h"
#include "parallel/launch/hosts.h"
#include "parallel/launch/options.h"
#include "parallel/launch/tf_config/tf_config.h"

namespace trainctl {

// All values that the plan depends on.
struct LaunchRequest {
  std::optional<int> ranks;           // number given by the user; empty: auto
  std::optional<int> max_ranks;       // limit for auto; empty: the number of cores, GPUs or slots
  std::vector<Host> hosts;            // hosts given by the user; empty: the nodes of the SLURM job, or this host
  std::optional<SlurmJob> slurm;      // the job that this process belongs to
  std::optional<TfConfig> tf_config;  // set if TF_CONFIG names the hosts; launch agents run on them
  std::string this_host = "localhost";
  MpiLibrary mpi = MpiLibrary::openmpi4;  // the MPI library that this program uses
  Cores cores;                            // the cores of this host
  int gpus = 0;                           // number of GPUs of this host; 0: ranks compute on the CPU
  Transport communication = Transport::automatic;
  std::chrono::milliseconds start_timeout{0}, timeout{0};  // those of the cluster's options; 0: no limit
  bool root = false;
  Variables variables;                        // environment variables of this process
  std::string network;                        // the network that connects all hosts, such as "10.1.0.0/16"; "": unknown
  std::vector<std::string> useless_networks;  // if `network` is unknown: networks that connect no hosts
  std::vector<std::string> forwarded;         // variables that the config names, which ranks on other hosts need
  bool always_supervised = false;             // whether a single rank also gets a process of its own
};

// Returns the number of ranks that the hosts of the request, or the nodes of its SLURM job, have slots for; 0 if it has
// neither. Throws like total_slots().
int slots_of(const LaunchRequest& request);

// Returns the number of ranks that the user asks for; empty: auto. `ranks` is the value of --ranks, "4" or "auto"; if
// it is empty, the config decides. Throws Error{config}.
std::optional<int> requested_ranks(const ClusterOptions& options, const std::string& ranks);

// The command-line options about ranks. Each overrides the config; an option that is not given is empty.
struct LaunchFlags {
  std::string ranks;             // "4" or "auto"
  std::string hosts;             // "node1:8,node2:8"
  std::string device;            // "auto", "cpu" or "cuda"
  bool sync = false;             // copy trainctl to hosts that do not have it
  bool reads_tf_config = false;  // read the hosts from TF_CONFIG if no other option names them
  std::optional<int> max_restarts;
};

// Returns how often the supervisor of a run starts its ranks again after a failure.
int most_restarts_of(const ClusterOptions& options, const LaunchFlags& flags);

// Returns TF_CONFIG if the command reads it and no other option names hosts, otherwise an empty value. Throws like
// find_tf_config().
std::optional<TfConfig> tf_config_for(const ClusterOptions& options, const LaunchFlags& flags,
                                      const Variables& variables);

// Combines the config, the command line and the resources of this host and process, including its GPUs if all ranks run
// on this host. Throws Error{config}, and Error{resource} if GPUs are requested and no GPU is found. The caller must
// have set the device in the options from `flags.device`.
LaunchRequest launch_request(const ClusterOptions& options, const LaunchFlags& flags);

struct LaunchPlan {
  int ranks = 1;
  int wanted_ranks = 1;                  // number of ranks when all hosts take part
  std::optional<TfConfig> tf_config;     // set if launch agents wait for a connection from this process
  std::vector<Host> hosts;               // hosts given by the user; empty: this host, or the nodes of the SLURM job
  std::vector<std::string> other_hosts;  // all hosts of the run except this one
  std::vector<std::string> nodes;        // without `hosts`: the names of the SLURM job's nodes, if they are known
  bool hosts_answer = false;             // whether a remote shell has reached the other hosts
  bool one_host = true;                  // whether all ranks run on this host
  bool first_rank_here = true;           // whether rank 0 runs on this host
  bool oversubscribed = false;           // whether there are more ranks than cores
  int ranks_here = 1;                    // number of ranks on this host, if it is known
  int threads = 1;                       // number of threads of each rank on this host
  int cores_here = 1;                    // number of cores that the ranks of this host may use together
  std::chrono::milliseconds start_timeout{0};  // how long ranks may take to start; 0: no limit
  std::chrono::milliseconds timeout{0};        // how long a rank waits for the others; 0: no limit
  // The networks or interfaces on which mpirun and its daemons may listen, and on which the ranks may listen; empty:
  // all. See preload/listen.cpp.
  std::string listen_on, ranks_listen_on;
  MpiLibrary mpi = MpiLibrary::openmpi4;
  std::vector<std::string> mpirun;    // the command line up to the program's name; empty: one rank, in this process
  Variables::Map environment;         // variables to set for mpirun, or for the only rank
  std::vector<std::string> warnings;  // shown before the start
};

// Returns the number of ranks for `ranks: auto`: one for each GPU, or without GPUs one for each core.
int automatic_ranks(int usable_cores, int gpus);

// Makes the plan. Throws Error{config} if hosts have fewer slots than ranks, or if this MPI library cannot start ranks.
// Does not start a process or contact a host.
LaunchPlan plan_launch(const LaunchRequest& request);

// Throws Error{config} if the run of this plan has fewer ranks than it needs after a loss of hosts. If the ranks of a
// run on this host alone are not given, their number is not compared: the config may be for a larger host.
void require_min_ranks(const ClusterOptions& options, const LaunchRequest& request, const LaunchPlan& plan);

}  // namespace trainctl
