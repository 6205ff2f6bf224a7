// Follows a job of SLURM: its state and its log.
#pragma once

#include <string>

#include "parallel/launch/slurm/job.h"

namespace trainctl {

// Logs whether a job that was just submitted runs, or what it waits for, as soon as SLURM knows. Throws
// Error{interrupted} on a request to stop, which leaves the job as it is.
void tell_whether_it_starts(const Signals& signals, const std::string& job);

// Follows a job until it has ended: copies its log to standard output, unless `hides_log`, and logs changes of its
// state. Throws Error{interrupted} on a request to stop, which leaves the job as it is, and Error{peer} if SLURM no
// longer answers.
JobState follow_job(const Signals& signals, const std::string& job, const std::string& log_path, bool hides_log);

}  // namespace trainctl
