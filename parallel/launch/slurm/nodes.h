// The nodes of a SLURM job: how to run a command on one of them, and how to start ranks on a part of them.
#pragma once

#include <string>
#include <vector>

#include "parallel/launch/variables.h"

namespace trainctl {

struct SlurmJob;

// Returns the words before a shell command that run it on a node of this job, in a step that shares the processors with
// the other steps of the job. Empty if srun is not installed.
std::vector<std::string> node_shell(const std::string& node);

// Returns such words for any node: the node and a shell command are appended, as with ssh. Empty if srun is not
// installed.
std::vector<std::string> node_agent();

// Returns the nodes besides the one of this process; empty if this process is on none of them.
std::vector<std::string> other_nodes(const std::vector<std::string>& nodes, const Variables& variables);

// Returns the variables with which mpirun's srun starts daemons on these nodes. They need not wait for the processors
// of an earlier attempt, which SLURM regards as used while a node does not answer. If the nodes are a part of the job,
// mpirun and srun use only them.
Variables::Map variables_of(const SlurmJob& job);

}  // namespace trainctl
