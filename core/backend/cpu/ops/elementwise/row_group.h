// The lowering of ops that run together, row by row, which only the lowering of programs creates (RowGroup).
#pragma once

#include "core/backend/cpu/lower.h"

namespace trainctl::cpu {

Lowering lower_row_group(const LowerContext& context);

}  // namespace trainctl::cpu
