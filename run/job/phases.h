// A run's phases (train.phases), each of which is trained, checked and measured as a run of its own.
#pragma once

#include <cstddef>
#include <string>

namespace trainctl {

struct RunSpec;

// The number of phases; 1 for a run without `train.phases`.
std::size_t phase_count(const RunSpec& run);

// The run as phase `number`, from 0 on, trains it: with that phase's epochs, frozen layers and optimizer, and without
// phases. Its seed is of dropout and noise alone, whose steps begin anew; initial weights and data are those of the
// run's seed. The run itself where it has no phases.
RunSpec in_phase(const RunSpec& run, std::size_t number);

// The phase that --phase names, from 1 on; 0: the last one. Throws Error{config} where there is no such phase.
RunSpec chosen_phase(const RunSpec& run, int stated);

// "phase 2 of 3: 5 epochs with adam", or "" for a run without phases.
std::string phase_text(const RunSpec& run, std::size_t number);

}  // namespace trainctl
