// Writes a run as a batch job of SLURM: a script for sbatch.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "parallel/launch/variables.h"

namespace trainctl {

// How long before the end of its time limit a job receives the signal to save, and the reason for this value.
struct SignalLead {
  int seconds = 120;
  std::string reason = "no run has been measured yet";
};

// Computes the time from measurements of a run: a request to stop takes effect after the step that follows the current
// step, then a checkpoint is written. The result is at least a minute, rounded up to tens of seconds.
SignalLead lead_from(double step_seconds, double save_seconds, const std::string& run_directory);

struct BatchJob {
  std::string name;       // letters, digits, '.', '_', '-'
  std::string directory;  // working directory; the paths of the command and the log are relative to it
  int nodes = 1;
  int ranks = 1;  // number of tasks
  int gpus_per_node = 0;
  std::optional<int> cpus_per_task;
  std::string time;   // in SLURM's format; empty: the limit of the partition
  std::string array;  // task numbers such as "1-8"; empty: one job
  // Whether the run goes on with the other nodes if a node is lost. Otherwise SLURM queues the job again.
  bool survives_nodes = false;
  std::vector<std::string> sbatch;  // more options of sbatch, without dashes, such as "partition=gpu"
  SignalLead lead;
  std::vector<std::string> command;     // the command that trains
  std::vector<std::string> written_by;  // the command that made the script
};

// Returns the seconds of a time limit in any of SLURM's formats: minutes, minutes:seconds, hours:minutes:seconds,
// days-hours, days-hours:minutes, days-hours:minutes:seconds. Empty if the text is invalid or means no limit.
std::optional<int> slurm_seconds(std::string_view time);

// Whether a text names the tasks of an array as sbatch's --array does: numbers and ascending ranges such as 0-15:4,
// separated by commas, and perhaps a limit of tasks at a time such as %4 at the end.
bool is_task_list(std::string_view tasks);

// Returns the option of `trainctl launch slurm` that sets what this option of sbatch ("nodes=5") sets; "" if there is
// none. Throws Error{config} if the text is no option of sbatch without its dashes, or if the option must have the
// value that trainctl gives it.
std::string own_option_for(const std::string& sbatch);

// Returns the name of the job's log in sbatch's notation, in which %j, or %A and %a, mean the numbers of the job.
std::string log_pattern(const BatchJob& job);

// Returns the path of the log of a job that was submitted as `number`.
std::string log_path(const BatchJob& job, const std::string& number);

// Returns the script. Throws Error{config} if the time limit is so short that the signal to save may arrive at the
// beginning, or if an option has a line break or another control character.
std::string batch_script(const BatchJob& job);

// Returns the name of a run whose config has the name `name`: "<name>-task-<N>" in task N of an array, otherwise
// `name`.
inline std::string name_in_array(const std::string& name, const Variables& variables) {
  const auto task = variables.number("SLURM_ARRAY_TASK_ID");
  return task ? name + "-task-" + std::to_string(*task) : name;
}

}  // namespace trainctl
