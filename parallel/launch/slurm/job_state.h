// The state of a batch job, as `scontrol --oneliner show job` tells it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace trainctl {

struct JobState {
  std::string name;    // SLURM's: "PENDING", "RUNNING", "COMPLETED", "TIMEOUT", ...
  std::string reason;  // why it waits, or ended; empty: none
  int exit_code = 0;   // of its script, once that has ended; 128 + n where signal n ended it
  int restarts = 0;    // how often it was queued again

  // Whether it will do nothing more.
  bool ended() const;
  // Whether it waits for what its partition does not have.
  bool may_never_start() const;
};

// Reads the line; nothing where it tells of no job.
std::optional<JobState> read_job_state(std::string_view line);

// The exit code of a command that waited for the job to end: that of its script, 6 where SLURM ended it for the memory
// that it took, else 5.
int exit_code_of(const JobState& state);

}  // namespace trainctl
