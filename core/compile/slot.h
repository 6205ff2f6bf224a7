// Computes the offsets of inputs, activations and workspaces in a program's slot, from their lifetimes.
#pragma once

#include "core/compile/placed_program.h"

namespace trainctl {

// Sets the offsets of the tensors and workspaces of one slot; returns the slot's bytes.
std::int64_t place_slot(PlacedProgram& program);

}  // namespace trainctl
