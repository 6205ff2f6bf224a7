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

// Reads the records of one run in a folder, ordered by rank. Records that an earlier run with another number of ranks
// has left are skipped. Throws Error{data} if the folder holds no record or a record cannot be read.
std::vector<FlightState> read_flights(const std::string& folder);

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

// Returns the first divergence by step and, within a step, by time; empty if all ranks have made the same calls. Ranks
// without a record count neither as entered nor as missing.
std::optional<FlightDivergence> first_divergence(std::span<const FlightState> ranks);

// A table of the ranks with their steps, their activities and the times since their last changes, and a sentence about
// the first divergence.
std::string describe_flights(std::span<const FlightState> ranks);
Json flights_json(std::span<const FlightState> ranks);

}  // namespace trainctl
