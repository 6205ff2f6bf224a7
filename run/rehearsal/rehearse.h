// Lets standard faults happen to short runs of a config, and finds out what was lost.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/json_fwd.h"
#include "run/rehearsal/rehearsed_run.h"
#include "run/rehearsal/standard_faults.h"

namespace trainctl {

struct GivenConfig;
struct LaunchFlags;
struct RunSpec;

struct RehearsalRequest {
  std::int64_t steps = 20;  // of each run, at most those of the config
  double timeout = 30;      // seconds after which a rank that hangs is given up, if cluster.timeout is longer
  bool keeps = false;       // whether the runs are kept
};

// A fault, the run that it happened to, and what it did.
struct Rehearsed {
  RehearsedFault fault;
  RehearsedRun run;
  FaultResult result;
};

struct RehearsalResult {
  RehearsedRun undisturbed;       // the run without faults
  std::vector<Rehearsed> faults;  // in the order of the runs
  std::string kept;               // the folder of the runs; "" if they were removed

  // Whether the run survives all faults.
  bool survived() const;
};

// Starts a run without faults, and a run for each fault that suits it. Throws an Error if the run without faults fails
// or is too short, and as Rehearsal does.
RehearsalResult rehearse(const GivenConfig& given, const LaunchFlags& launch, const RunSpec& spec,
                         const RehearsalRequest& request);

// Return a table of the faults with the verdict, and a JSON object.
std::string to_text(const RehearsalResult& rehearsed);
Json to_json(const RehearsalResult& rehearsed);

}  // namespace trainctl
