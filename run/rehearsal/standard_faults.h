// The faults that `trainctl rehearse` tries on a config.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace trainctl {

// How a run that survives a fault must end.
enum class Survival {
  same_weights,  // completed; in reproducible mode with the weights of an undisturbed run
  completes,     // completed, with other weights
  diverges,      // with an error, since the config asks for that (exit code 4)
};

struct RehearsedFault {
  std::string name;       // its name in the table
  std::string faults;     // the value of the key `faults`
  std::string last;       // the fault of the list from which times are counted
  std::int64_t mark = 1;  // its position in the list, from 1
  Survival survival = Survival::same_weights;
  std::vector<std::string> sets = {};  // further settings of the config
};

// The run on which faults are tried.
struct RehearsalPlan {
  int ranks = 1;
  std::vector<std::string> hosts;      // the hosts of the ranks, that of rank 0 first
  std::int64_t steps = 20;             // at least least_rehearsed_steps
  std::int64_t checkpoint_every = 5;   // steps
  std::string on_not_finite = "stop";  // what the config asks for after a loss that is not finite
  double timeout = 30;                 // seconds after which a rank counts as silent
};

// The smallest number of steps of a rehearsed run.
inline constexpr std::int64_t least_rehearsed_steps = 8;

// Returns the interval of the checkpoints of a run of `steps` steps, at least least_rehearsed_steps.
std::int64_t rehearsed_interval(std::int64_t steps);

// Returns the faults that suit the ranks, hosts and options of the run.
std::vector<RehearsedFault> standard_faults(const RehearsalPlan& plan);

}  // namespace trainctl
