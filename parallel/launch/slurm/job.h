// Submits a batch job to SLURM, and reads its state as `scontrol --oneliner show job` prints it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "parallel/launch/supervisor/signals.h"

namespace trainctl {

struct JobState {
  std::string name;    // SLURM's name: "PENDING", "RUNNING", "COMPLETED", "TIMEOUT", ...
  std::string reason;  // why it is pending or has ended; empty: no reason
  int exit_code = 0;   // exit code of its script, once it has ended
  int signal = 0;      // signal that ended its script; 0: none
  int restarts = 0;    // how often it was requeued

  // Whether the job has ended for good.
  bool ended() const;
  // Whether it waits for resources that its partition does not have.
  bool may_never_start() const;
};

// Parses the line; empty if it does not describe a job.
std::optional<JobState> read_job_state(std::string_view line);

// The exit code of a command that waited for the job to end. It is the exit code of the job's script, whatever the
// state is called: 75 for a job that was cancelled, preempted or timed out after it saved. 128 + n if signal n, which
// SLURM did not send, ended the script. 6 if SLURM ended the job because of its memory, and 5 if no exit code is known.
int exit_code_of(const JobState& state);

// Submits a script and returns the job's number. Throws Error{config} with SLURM's reason if SLURM refuses it, or if
// sbatch is not installed; Error{interrupted} on a request to stop.
std::string submit_batch(const Signals& signals, const std::string& script);

// The job's current state; empty if SLURM does not answer, or no longer knows the job.
std::optional<JobState> ask_for_job(const Signals& signals, const std::string& job);

}  // namespace trainctl
