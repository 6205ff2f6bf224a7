// The first steps of a rank: checks of its launcher, cores, supervision.
#pragma once

#include "parallel/launch/situation.h"

namespace trainctl {

// The first thing in a process that trains, rank or alone, before any thread starts: refuses launchers whose processes
// would not find each other (Error{config}), takes this rank's share of the cores, and sees to it that a supervised
// rank does not outlive its mpirun. What comes back is the number of threads that kernels may use.
int prepare_rank(const Situation& situation, const Variables& variables);

// Throws std::system_error where so many threads cannot be started: the libraries that start them end the process
// instead.
void require_threads(int count);

}  // namespace trainctl
