// Computes bfloat16 ops in float32 on processors where oneDNN does not support bfloat16: those without AVX-512.
#pragma once

#include <vector>

#include "core/backend/op_context.h"

namespace trainctl::cpu {

// Whether oneDNN computes in bfloat16 on this processor. Constant during a run.
bool has_bfloat16();

// Whether oneDNN would compute the op in bfloat16, but does not support bfloat16 on this processor.
bool needs_widening(const OpContext& context);

// The op in float32 between casts: bfloat16 inputs are widened to float32, and bfloat16 outputs are rounded from
// float32. The results equal the results of oneDNN's bfloat16 kernels, except for the order of the float32 sums, and
// for values that are not rounded: float32 parameters, and the logits inside of linear_cross_entropy.
std::vector<SubOp> widened_ops(const OpContext& context);

}  // namespace trainctl::cpu
