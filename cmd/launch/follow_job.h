// Waiting for a batch job, with its log.
#pragma once

#include <string>

#include "parallel/launch/slurm/job.h"

namespace trainctl {

// Says whether a job that was just submitted runs, or what it waits for, as soon as SLURM knows.
void tell_whether_it_starts(const Signals& signals, const std::string& job);

// Shows a job's log on standard output as it grows, unless it is silent, and says when its state changes, until the job
// has ended. Throws Error{interrupted} on a request to stop, which leaves the job as it is, and Error{peer} where SLURM
// does not answer any more.
JobState follow_job(const Signals& signals, const std::string& job, const std::string& log_path, bool silent);

}  // namespace trainctl
