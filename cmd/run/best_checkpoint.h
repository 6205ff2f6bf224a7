// The checkpoint of a run that is used where none is named.
#pragma once

#include <string>

namespace trainctl {

// The run's best checkpoint, or its last where none was found best, which is told.
std::string best_of_run(const std::string& run);

}  // namespace trainctl
