// A run that `trainctl rehearse` has started, as its directory describes it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace trainctl {

struct RehearsedFault;

struct RehearsedRun {
  int exit_code = 0;
  std::string errors;     // the text of its standard error
  std::string directory;  // its run directory
  // From metrics.jsonl; empty or 0 if the run ended before.
  int ranks = 0;
  std::vector<std::string> hosts;
  std::int64_t steps = 0;  // number of steps done at its end
  std::string weights_sha256;
  std::optional<double> loss;  // of its last logged step

  // One start of the ranks.
  struct Start {
    std::int64_t first_step = 0;
    std::optional<double> first_step_time;  // when its first step was logged, in seconds since 1970
    std::string cause;                      // why the ranks were started again; "" for the first start
    double detected = 0;                    // when that was known
  };
  std::vector<Start> starts;
};

// Reads the metrics of a run that has ended.
RehearsedRun read_rehearsed_run(const std::string& directory, int exit_code, std::string errors);

// What a fault has done to a run.
struct FaultResult {
  bool happened = false;
  bool survived = false;
  std::string outcome;                                    // in words
  std::optional<std::int64_t> lost_steps;                 // empty: the ranks were not started again
  std::optional<double> detect_seconds, recover_seconds;  // from the fault to its detection, and to the first new step
  bool equal = false;                                     // the weights at the end are those of the undisturbed run
  std::optional<double> loss_change;  // the last loss relative to that of the undisturbed run, minus 1
};

// `reproducible`: whether a run must end with the weights of the undisturbed run.
FaultResult judge(const RehearsedFault& fault, const RehearsedRun& run, const RehearsedRun& undisturbed,
                  bool reproducible);

}  // namespace trainctl
