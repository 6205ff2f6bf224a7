// Formats the state of a watched run as text and JSON, as pure functions.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/base/json_fwd.h"
#include "io/metrics/watch/watched_run.h"

namespace trainctl {

// Returns text such as "runs/flowers: 4 ranks on node1, node2, 101,770 parameters, <device>, from step 1200".
std::string head_line(const WatchedRun& run);

// Returns text such as "running", "starting", "completed", "running, no event for 2:03", or "no event of process 12 on
// node1 for 3:05".
std::string state_text(const WatchedRun& run);

// Returns the bar that the run itself shows, and a second line with its state, the results of the last epoch and the
// last checkpoint. Each line is at most `width` columns wide. `now` is in seconds since 1970.
std::vector<std::string> live_lines(const WatchedRun& run, int width, double now);

// Returns a table with one line for each run.
std::string runs_table(std::span<const WatchedRun* const> runs, double now);

// Returns the present state as one JSON document.
Json to_json(const WatchedRun& run);

}  // namespace trainctl
