// A batch job: given to SLURM, and its state, as `scontrol --oneliner show job` tells it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "parallel/launch/supervisor/signals.h"

namespace trainctl {

struct JobState {
  std::string name;    // SLURM's: "PENDING", "RUNNING", "COMPLETED", "TIMEOUT", ...
  std::string reason;  // why it waits, or ended; empty: none
  int exit_code = 0;   // of its script, once that has ended
  int signal = 0;      // that ended its script; 0: none
  int restarts = 0;    // how often it was queued again

  // Whether it will do nothing more.
  bool ended() const;
  // Whether it waits for what its partition does not have.
  bool may_never_start() const;
};

// Reads the line; nothing where it tells of no job.
std::optional<JobState> read_job_state(std::string_view line);

// The exit code of a command that waited for the job to end. The exit code of the job's script decides, whatever the
// state is called: a job that was cancelled, preempted or timed out and saved gives 75. 128 + n if signal n ended a
// script that SLURM did not end. 6 if SLURM ended the job because of its memory, and 5 if no exit code is known.
int exit_code_of(const JobState& state);

// Submits a script and returns the job's number. Throws Error{config} with SLURM's reason where it is refused, or where
// there is no sbatch here; Error{interrupted} on a request to stop.
std::string submit_batch(const Signals& signals, const std::string& script);

// The job's state now; nothing where SLURM does not answer, or no longer knows the job.
std::optional<JobState> ask_for_job(const Signals& signals, const std::string& job);

}  // namespace trainctl
