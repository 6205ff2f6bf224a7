// The report on ranks that hang.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "parallel/launch/supervisor/outcome.h"
#include "parallel/launch/watch/hang_rule.h"
#include "parallel/launch/watch/process_place.h"

namespace trainctl {

struct HangEvidence {
  std::map<int, ProcessPlace> places = {};  // what the processes of the ranks do; ranks without an answer are missing
  std::vector<std::string> silent_hosts = {};  // hosts whose agents do not answer
};

// Returns the ranks that a signal has stopped, or a debugger.
std::vector<int> stopped_ranks(const HangEvidence& evidence);
std::vector<int> debugged_ranks(const HangEvidence& evidence);

// Returns the outcome of an attempt whose ranks hang: the message names the ranks that the others wait for, what they
// do and for how long, then lists all ranks, and then shows the threads of those ranks.
Outcome hang_outcome(const HangRule& rule, double now, const HangEvidence& evidence);

}  // namespace trainctl
