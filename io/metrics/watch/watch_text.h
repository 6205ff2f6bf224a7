// What people and programs read of a run that is watched, as pure functions.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/base/json_fwd.h"
#include "io/metrics/watch/watched_run.h"

namespace trainctl {

// "runs/flowers: 4 ranks on node1, node2, 101,770 parameters, <device>, from step 1200".
std::string head_line(const WatchedRun& run);

// "running", "starting", "completed"; "running, no event for 2:03"; "no sign of life of process 12 on node1 for 3:05".
std::string state_text(const WatchedRun& run);

// The bar that the run itself shows, and below it its state, what the last epoch came to and the last checkpoint, each
// at most `width` columns wide. `now`: seconds since 1970.
std::vector<std::string> live_lines(const WatchedRun& run, int width, double now);

// A table with one line for each run.
std::string runs_table(std::span<const WatchedRun* const> runs, double now);

// The present state as one document.
Json to_json(const WatchedRun& run);

}  // namespace trainctl
