// Where a step writes compute copies in addition to what its update writes: one rule for the engine and the plan.
#pragma once

#include <vector>

#include "core/compile/placed_program.h"

namespace trainctl {

// Whether the program begins with a segment of the phase `prepare`, after which all compute copies are written.
bool begins_with_prepare(const PlacedProgram& placed);

// Returns the program's schedule with an item of the copies segment wherever a step writes all compute copies: after a
// segment of the phase `prepare`, which changes parameters, otherwise at the start of a training step; and, with
// players, before the first forward pass after an update. `updates_copies`: see Backend; such updates write the copies,
// so that only those of parameters that other ops change are missing between players, and none at the start.
std::vector<ScheduleItem> schedule_with_copies(const PlacedProgram& placed, bool updates_copies);

}  // namespace trainctl
