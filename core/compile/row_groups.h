// Joins elementwise ops and reductions of rows of a layer, so that the tensors between them stay in the cache.
#pragma once

#include "core/program/program.h"

namespace trainctl {

// Replaces such ops by RowGroup, with the same results to the bit. Tensors that only ops of a group read are no longer
// written. An op is moved before ops that come between, if it reads nothing that they write and writes nothing that
// they read or write. Small ops and reshapes between, on which a group depends, are moved before the group.
void group_rows(Program& program);

}  // namespace trainctl
