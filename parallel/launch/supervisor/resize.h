// Requests to train with another number of ranks: a file in the run's directory, which the run's supervisor reads.
#pragma once

#include <optional>
#include <string>

namespace trainctl {

// Writes a request, which replaces an earlier one. Throws Error{resource} if the directory cannot be written.
void request_ranks(const std::string& run_directory, int ranks);

// Returns the number of ranks that is requested; empty if there is no request. A request that is older than half a
// minute does not count, since nobody waits for an answer: it is removed.
std::optional<int> requested_ranks_of(const std::string& run_directory);

// Called at least every few seconds by a process that waits for the supervisor to take the request. Returns false if
// there is none.
bool keep_request(const std::string& run_directory);

// Removes the request. Returns false if there is none.
bool remove_request(const std::string& run_directory);

}  // namespace trainctl
