// A program whose last micro-batch has fewer samples than the others.
#pragma once

#include "core/program/program.h"

namespace trainctl {

// Puts the passes of the last micro-batch of `rest`, a training program, behind those of `program`: both are of one
// network, before their strategies and their flat layout. They share parameters, gradients, statistics, sums and
// scalars, which are matched by name.
Program with_rest(Program program, const Program& rest);

}  // namespace trainctl
