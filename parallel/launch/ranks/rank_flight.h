// Opens the flight record of a rank (core/base/flight_record.h), which shows after a failure what the rank did.
#pragma once

#include <memory>
#include <string>

namespace trainctl {

class FlightRecord;

// Creates the record of a rank in a folder, and the folder if it is missing. Returns null, and logs why at level debug,
// if that is impossible: a rank can train without a record. "" as a folder returns null.
std::unique_ptr<FlightRecord> open_flight(const std::string& folder, int rank, int ranks);

// Removes the records that an earlier run with more ranks has left in the folder.
void remove_flights_from(const std::string& folder, int first_rank);

}  // namespace trainctl
