// Takes a phase (train.phases) out of a run. Each is trained, checked and measured as a run of its own.
#pragma once

#include <cstddef>
#include <string>

namespace trainctl {

struct RunSpec;

// The number of phases; 1 for a run without `train.phases`.
std::size_t phase_count(const RunSpec& run);

// Returns the run as phase `number`, counted from 0, trains it: with that phase's epochs, frozen layers and optimizer,
// and without phases. Its seed is for dropout and noise alone, whose steps begin anew; initial weights and data use the
// run's seed. Returns the run itself if it has no phases.
RunSpec in_phase(const RunSpec& run, std::size_t number);

// The phase that --phase names, counted from 1; 0: the last one. Throws Error{config} if there is no such phase.
RunSpec chosen_phase(const RunSpec& run, int option);

// "phase 2 of 3: 5 epochs with adam", or "" for a run without phases.
std::string phase_text(const RunSpec& run, std::size_t number);

}  // namespace trainctl
