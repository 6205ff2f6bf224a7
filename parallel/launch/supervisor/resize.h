// Requests to train with another number of ranks: a file in the run's directory, which the run's supervisor reads.
#pragma once

#include <optional>
#include <string>

namespace trainctl {

// Writes a request, which replaces an earlier one. Throws Error{resource} if the directory cannot be written.
void request_ranks(const std::string& run_directory, int ranks);

// Returns the number of ranks that is requested; empty if there is no request.
std::optional<int> requested_ranks_of(const std::string& run_directory);

// Removes the request if there is one.
void remove_request(const std::string& run_directory);

}  // namespace trainctl
