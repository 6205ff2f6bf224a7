// Merges the flight records of a run's ranks: what each rank did, and the first call at which they diverged.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/flight_state.h"
#include "core/base/json_fwd.h"

namespace trainctl {

struct Flights {
  std::vector<FlightState> ranks;     // ordered by rank
  std::vector<std::string> problems;  // for each record that cannot be read, why
};

// Reads the records of one run in a folder. Records that an earlier run with another number of ranks has left are
// skipped. Throws Error{data} if no record can be read.
Flights read_flights(const std::string& folder);

// A collective, or a message between two ranks, that some of its ranks have entered and others have not.
struct FlightDivergence {
  std::int64_t step = -1;
  std::int32_t number = 0;               // position among the communicator's calls of this step
  std::string text;                      // what most of the ranks that entered have called
  std::vector<int> ranks;                // the ranks that must make the call together
  std::vector<int> entered;              // those that have made it
  std::vector<int> missing;              // those that have not
  std::map<int, std::string> different;  // those that have made another call instead, and which
};

// Returns the first divergence by step and, within a step, by time; empty if all ranks have made the same calls. A call
// whose missing ranks all wait in other such calls is a consequence of these, and comes after them. Ranks without a
// record, or whose record has lost its calls, count neither as entered nor as missing.
std::optional<FlightDivergence> first_divergence(std::span<const FlightState> ranks);

// A table of the ranks with their steps, their activities and the times since their last changes, and a sentence about
// the first divergence. Also names the records that cannot be read.
std::string describe_flights(const Flights& flights);
Json flights_json(const Flights& flights);

}  // namespace trainctl
