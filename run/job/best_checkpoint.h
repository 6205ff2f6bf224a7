// The run and the checkpoint that a command reads where they are not named outright.
#pragma once

#include <string>

namespace trainctl {

// A run directory or a checkpoint as it is; of a config its newest run. Throws what load_run_spec() and newest_run()
// do.
std::string run_of(const std::string& path);

// The run's best checkpoint, or its last where none was found best, which is told.
std::string best_of_run(const std::string& run);

}  // namespace trainctl
