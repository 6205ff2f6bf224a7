// The slot of a program: where its inputs, activations and workspaces lie, by when they live.
#pragma once

#include "core/compile/placed_program.h"

namespace trainctl {

// Places the tensors and workspaces of one slot; returns its bytes.
std::int64_t place_slot(PlacedProgram& program);

}  // namespace trainctl
