// Examines the machines of a run for `trainctl doctor`, and reports what it finds.
#pragma once

#include <string>

namespace trainctl {

struct Outcome;
struct RankContext;
struct RunSpec;

struct ExaminationRequest {
  bool has_config = false;    // whether the user gave a config; otherwise checks what every run needs
  std::string run_directory;  // empty: runs/<name>
  bool gpus = false;          // whether the data that GPUs exchange is checked
  bool json = false;
};

// Examines the machines, on every rank of the run, and prints the findings on rank 0. `launch_problem`: why the ranks
// could not be started; if it is not empty, this process runs alone. Returns the exit code. Collective.
int examine(const RunSpec& spec, const ExaminationRequest& request, const std::string& launch_problem,
            RankContext& context);

// Prints a report that has this problem alone and no machines.
void report_problem(bool json, const std::string& problem);

// Reports an examination by ranks that this process supervised. Rank 0 prints its findings while it runs; this process
// adds how the ranks ended if they ended before they had finished. Returns the exit code.
int report_examination(bool json, const Outcome& ranks);

}  // namespace trainctl
