// Starts the runs of `trainctl rehearse` in a folder of their own.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "parallel/launch/host/scratch.h"
#include "parallel/launch/supervisor/signals.h"
#include "run/rehearsal/rehearsed_run.h"

namespace trainctl {

struct GivenConfig;
struct LaunchFlags;
struct RunSpec;

class Rehearsal {
 public:
  // `given`, `launch`: the config and the ranks of the runs, which must outlive the object. The runs are in a folder
  // beside the run's own directory (runs/<name>): a temporary one, or with `keeps` runs/<name>-rehearsal, which must
  // not exist.
  Rehearsal(const GivenConfig& given, const LaunchFlags& launch, const RunSpec& spec, bool keeps);
  ~Rehearsal();
  Rehearsal(const Rehearsal&) = delete;
  Rehearsal& operator=(const Rehearsal&) = delete;

  // Trains for `steps` steps with a checkpoint every `interval` steps and this value of `faults`, and further settings.
  // A request to stop ends the run, and throws Error{interrupted}.
  RehearsedRun run(const std::string& name, std::int64_t steps, std::int64_t interval, const std::string& faults,
                   const std::vector<std::string>& sets = {});
  const std::string& folder() const { return folder_; }

 private:
  Signals signals_;  // once constructed, a request to stop ends the run in progress
  const GivenConfig& given_;
  const LaunchFlags& launch_;
  int min_ranks_;
  std::string parent_;
  bool made_parent_ = false;
  std::optional<ScratchFolder> scratch_;  // empty: the runs are kept
  std::string folder_;
};

}  // namespace trainctl
