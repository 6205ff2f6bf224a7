// What the time of an op depends on, as a text: ops of equal signature take equally long on a machine.
#pragma once

#include <string>

#include "core/compile/placed_program.h"

namespace trainctl {

// "dense 1f00c8a5d3e2b497": the kind, and a hash of attributes, shapes, dtypes, layouts and implementation.
std::string op_signature(const PlacedProgram& program, const PlacedOp& op);

}  // namespace trainctl
