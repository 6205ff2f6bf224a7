// Giving a batch script to SLURM, and asking after the job.
#pragma once

#include <optional>
#include <string>

#include "parallel/launch/slurm/job_state.h"
#include "parallel/launch/supervisor/signals.h"

namespace trainctl {

// Submits a script and returns the job's number. Throws Error{config} with SLURM's reason where it is refused, or where
// there is no sbatch here; Error{interrupted} on a request to stop.
std::string submit_batch(const Signals& signals, const std::string& script);

// The job's state now; nothing where SLURM does not answer, or no longer knows the job.
std::optional<JobState> ask_for_job(const Signals& signals, const std::string& job);

}  // namespace trainctl
