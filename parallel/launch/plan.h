// LaunchPlan: how many ranks run where, and the command that starts them; decided before anything is started.
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

// All that the plan depends on.
struct LaunchRequest {
  std::optional<int> ranks;           // as stated; nothing: auto
  std::optional<int> most_ranks;      // of auto; nothing: as many as there are cores, GPUs or slots
  std::vector<Host> hosts;            // as stated; empty: what SLURM gave, or this host
  std::optional<SlurmJob> slurm;      // the job that this process belongs to
  std::optional<TfConfig> tf_config;  // where it names the hosts: launch agents run there
  std::string this_host = "localhost";
  MpiLibrary mpi = MpiLibrary::openmpi4;  // of this program
  Cores cores;                            // of this host
  int gpus = 0;                           // of this host; 0: ranks compute on the CPU
  Transport communication = Transport::automatic;
  std::chrono::milliseconds start_timeout{0};
  bool root = false;
  Variables variables;                        // of this process
  std::string network;                        // that joins the hosts, where there is one: "10.1.0.0/16"
  std::vector<std::string> useless_networks;  // where none joins them: those that lead from no host to another
  std::vector<std::string> forwarded;  // more variables that ranks on other hosts need: those that the config names
};

// How many ranks the user asks for: by --ranks ("4" or "auto", empty where it is not given), else by the config;
// nothing: auto. Throws Error{config}.
std::optional<int> stated_ranks(const ClusterOptions& options, const std::string& ranks);

// How the ranks of a command are started, as its command line states it: each wins over the config, empty where it is
// not given.
struct LaunchFlags {
  std::string ranks;             // "4" or "auto"
  std::string hosts;             // "node1:8,node2:8"
  std::string device;            // "auto", "cpu" or "cuda"
  bool sync = false;             // sends trainctl to hosts that lack it
  bool reads_tf_config = false;  // TF_CONFIG names the hosts where nothing else does
};

// TF_CONFIG, where a command reads it and nothing else names hosts. Throws as find_tf_config() does.
std::optional<TfConfig> tf_config_for(const ClusterOptions& options, const LaunchFlags& flags,
                                      const Variables& variables);

// Joins config, command line and what this host and process have, GPUs too where the ranks run on this host alone.
// Throws Error{config}, and Error{resource} where they want GPUs and there are none. `flags.device` is the caller's to
// put into the options.
LaunchRequest launch_request(const ClusterOptions& options, const LaunchFlags& flags);

struct LaunchPlan {
  int ranks = 1;
  std::optional<TfConfig> tf_config;           // where launch agents wait for word of this process
  std::vector<Host> hosts;                     // stated ones; empty: this host, or the nodes of the SLURM job
  std::vector<std::string> other_hosts;        // those of them that are not this one
  bool hosts_answer = false;                   // these have answered to a remote shell
  bool one_host = true;                        // all ranks on this host
  bool first_rank_here = true;                 // rank 0 is
  bool oversubscribed = false;                 // more ranks than cores
  int ranks_here = 1;                          // on this host, as far as it is known
  int threads = 1;                             // for each rank, on this host
  int cores_here = 1;                          // that the ranks of this host may use together
  std::chrono::milliseconds start_timeout{0};  // how long ranks may take to start; 0: for ever
  // Where mpirun and its daemons, and ranks, may listen; empty: everywhere. See preload/listen.cpp.
  std::string listen_on, ranks_listen_on;
  MpiLibrary mpi = MpiLibrary::openmpi4;
  std::vector<std::string> mpirun;    // the command up to the program; empty: one rank, in this process
  Variables::Map environment;         // set for mpirun, or for the one rank
  std::vector<std::string> warnings;  // to be shown before the start
};

// `ranks: auto`: one rank for each GPU; without GPUs one for each core.
int automatic_ranks(int usable_cores, int gpus);

// Throws Error{config} where a host has fewer slots than ranks, or the ranks of this MPI library cannot be started.
// Starts and asks nothing.
LaunchPlan plan_launch(const LaunchRequest& request);

}  // namespace trainctl
