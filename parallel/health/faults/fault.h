// A fault that a run rehearses: its options in `faults:` of a config, and what it does.
//
// To add a fault, add its options to the file of what it disturbs (processes.cpp, numbers.cpp, storage.cpp, link.cpp),
// a declaration and a line in table.cpp.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/spec/values.h"

namespace trainctl {

// What a fault can disturb, as one rank sees it.
class FaultScene {
 public:
  virtual ~FaultScene() = default;

  virtual int rank() const = 0;
  // The name of the host of each rank.
  virtual const std::vector<std::string>& hosts() const = 0;
  // The process that has started this rank; 0 if no launcher has.
  virtual pid_t launcher() const = 0;
  // The directory of the run on rank 0; "" on the other ranks.
  virtual const std::string& run_directory() const = 0;

  // Lets this rank wait for `seconds` after each of the next `steps` steps.
  virtual void delay_steps(std::int64_t steps, double seconds) = 0;
  // Makes the next batch of the replica of `rank` give a loss that is NaN. Called on all ranks.
  virtual void spoil_next_batch(int rank) = 0;
  // Flips one bit of a parameter on this rank.
  virtual void flip_bit() = 0;
  // Waits until all checkpoints of the steps so far are written. Called on all ranks.
  virtual void wait_for_checkpoints() = 0;

  // Whether this rank is the lowest one on the host, which acts for it.
  bool acts_for(const std::string& host) const;
  // The number of ranks.
  int ranks() const { return static_cast<int>(hosts().size()); }
};

struct FaultOptions : Options {
  std::int64_t step = 0;  // number of training steps that are done when the fault happens

  // Describes the fault in words, such as "rank 1 is killed".
  virtual std::string text() const = 0;
  // The number of steps done when act() is called.
  virtual std::int64_t acts_after() const { return step; }
  // The rank that it happens to, if the config names one.
  virtual std::optional<int> named_rank() const { return std::nullopt; }
  // Returns why the fault cannot happen in this run, and what to do; "" if it can. Called on all ranks before training.
  virtual std::string why_impossible(const FaultScene& scene) const { return (void)scene, ""; }
  // Makes the fault happen. Called on all ranks after the same step.
  virtual void act(FaultScene& scene) const = 0;
};

// The table of faults, and the list of a run's faults.
const ChoiceTable& fault_choices();
using FaultList = ChoicesOf<fault_choices>;

// Returns a warning that names the faults that will still happen in a run which begins or goes on after `step` steps:
// those of later steps that are not marked in its directory (mark_fault()). Returns "" if there are none.
std::string rehearsal_warning(const FaultList& faults, const std::string& run_directory, std::int64_t step);

// Returns why a fault cannot happen in a run of this number of steps, and what to do; "" if it can. `steps`: 0 if it is
// unknown.
std::string why_too_late(const FaultOptions& fault, std::int64_t steps);

// Returns why a fault cannot happen in a run of this number of ranks, and what to do; "" if it can.
std::string why_no_rank(const FaultOptions& fault, int ranks);

// Whether mark_fault() has marked a fault in the directory of a run.
bool is_marked(const std::string& run_directory, std::size_t number, const Choice& fault);

// Marks in the directory of a run that a fault has happened, with the time and the number of steps. `number`: the
// position of the fault in the list, from 1. Returns false if it was marked before, also by an earlier start of the
// run, or if the mark cannot be written, which is logged as a warning: the fault then must not happen.
bool mark_fault(const std::string& run_directory, std::size_t number, const Choice& fault);

// Returns the text of the fault of this name that was marked directly before a step (FaultOptions::text()); "" if there
// is none. `step`: its number, counted from 1.
std::string fault_before_step(const std::string& run_directory, std::string_view name, std::int64_t step);

}  // namespace trainctl
