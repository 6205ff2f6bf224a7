// Writes a program as text for people: `check --dump program` and `check --dump dot`.
#pragma once

#include <string>

#include "core/program/program.h"

namespace trainctl {

// Returns the segments with their ops (kind, attributes, layer; tensors with shape, dtype and placement), the flat
// layout and the schedule. Equal programs result in equal text.
std::string dump(const Program& program);

// Returns a graph in the DOT language of Graphviz. It has a node for each op, in a cluster for each segment, with
// coloured collectives. It has an edge for each tensor from the op that wrote it to the ops that read it, with shape
// and placements.
std::string dump_dot(const Program& program);

// Returns one op as a line, such as "conv2d 3x3 activation=relu  c1: input 64x28x28x1, c1/kernel 3x3x1x32 -> c1/output
// 64x26x26x32".
std::string dump(const Program& program, const Op& op);

}  // namespace trainctl
