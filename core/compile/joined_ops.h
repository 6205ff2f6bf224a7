// Joins ops that follow each other, so that the second need not read from memory what the first has computed.
#pragma once

#include <vector>

#include "core/graph/op.h"

namespace trainctl {

// Returns the ops of a segment in which an op and the next one are replaced by a joined op, where OpDef::joined_with()
// has one: a sum and the layer normalization of it. The results are the same to the bit.
std::vector<Op> join_ops(std::vector<Op> ops);

}  // namespace trainctl
