// Submits a batch job to SLURM, and reads its state as `scontrol --oneliner show job` prints it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "parallel/launch/supervisor/signals.h"

namespace trainctl {

struct JobState {
  std::string name;        // SLURM's name of the state: "PENDING", "RUNNING", "COMPLETED", "TIMEOUT", ...
  std::string reason;      // why it is pending or has ended; empty: no reason
  int exit_code = 0;       // exit code of its script, once it has ended
  int signal = 0;          // signal that ended its script; 0: none
  int restarts = 0;        // number of times that it was requeued
  std::string nodes;       // its nodes in SLURM's notation, such as "n[1-2]"; empty: none, or unknown
  std::string batch_node;  // the node on which its script was started; empty: there is no script, or it is unknown

  // Returns whether the job has ended and will not be requeued.
  bool ended() const;
  // Returns whether the job waits for resources that its partition does not have.
  bool may_never_start() const;
};

// Parses the line; empty if it does not describe a job.
std::optional<JobState> read_job_state(std::string_view line);

// Returns the exit code of a command that waited for the job to end. It is the exit code of the job's script in all
// states: 75 for a job that was cancelled, preempted or timed out after it saved. If a signal n that SLURM did not send
// ended the script, it is 128 + n. It is 6 if SLURM ended the job because of its memory, and 5 if the exit code is
// unknown.
int exit_code_of(const JobState& state);

// Submits a script and returns the job's number. Throws Error{config} with SLURM's reason if SLURM refuses it, or if
// sbatch is not installed; Error{interrupted} on a request to stop.
std::string submit_batch(const Signals& signals, const std::string& script);

// Returns the job's current state; empty if SLURM does not answer, or no longer knows the job.
std::optional<JobState> ask_for_job(const Signals& signals, const std::string& job);

}  // namespace trainctl
