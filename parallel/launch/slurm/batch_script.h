// A run as a batch job of SLURM: the script that sbatch takes.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "parallel/launch/variables.h"

namespace trainctl {

// How long before its time limit a job is told to save, and why so long.
struct SignalLead {
  int seconds = 120;
  std::string reason = "nothing is measured yet";
};

// From what a run has shown: a request to stop is obeyed behind the step after the present one, then a checkpoint is
// written. At least a minute, in whole tens of seconds.
SignalLead lead_from(double step_seconds, double save_seconds, const std::string& run_directory);

struct BatchJob {
  std::string name;       // letters, digits, '.', '_', '-'
  std::string directory;  // where it runs: paths of the command and the log are relative to it
  int nodes = 1;
  int ranks = 1;  // tasks
  int gpus_per_node = 0;
  std::optional<int> cpus_per_task;
  std::string time;                 // as SLURM has it; empty: the limit of the partition
  std::string array;                // "1-8"; empty: one job
  std::vector<std::string> sbatch;  // more options of sbatch's, without their dashes: "partition=gpu"
  SignalLead lead;
  std::vector<std::string> command;     // that trains
  std::vector<std::string> written_by;  // the command that made the script
};

// Seconds of a time limit in any of SLURM's forms: minutes, minutes:seconds, hours:minutes:seconds, days-hours,
// days-hours:minutes, days-hours:minutes:seconds. Nothing where it is none, or no limit.
std::optional<int> slurm_seconds(std::string_view time);

// The job's log, as sbatch has it: %j, or %A and %a, stand for numbers.
std::string log_pattern(const BatchJob& job);

// The script. Throws Error{config} if its time is so short that the signal to save may come at the beginning, or if an
// option has a line break or another control character.
std::string batch_script(const BatchJob& job);

// The name of a run that a config calls `name`: "<name>-task-<N>" in task N of an array, else the name itself.
inline std::string name_in_array(const std::string& name, const Variables& variables) {
  const auto task = variables.number("SLURM_ARRAY_TASK_ID");
  return task ? name + "-task-" + std::to_string(*task) : name;
}

}  // namespace trainctl
