// bfloat16 on processors where oneDNN does not compute in it: those without AVX-512.
#pragma once

#include <vector>

#include "core/backend/op_context.h"

namespace trainctl::cpu {

// Whether oneDNN computes in bfloat16 on this processor. Constant during a run.
bool has_bfloat16();

// Whether oneDNN computes the op, in bfloat16, and this processor lacks that.
bool needs_widening(const OpContext& context);

// The op in float32 between casts: bfloat16 inputs are widened, and its bfloat16 outputs are rounded from float32, so
// that results are those of oneDNN's bfloat16 kernels but for the order of their float32 sums.
std::vector<SubOp> widened_ops(const OpContext& context);

}  // namespace trainctl::cpu
