// The values of elementwise functions in float64.
#pragma once

#include "core/expression/elementwise_program.h"

namespace trainctl {

// Returns the value of a function; NaN for `input` and `constant`. Operands that the function does not have are
// ignored.
double value_of(ScalarFunction function, double a, double b, double c);

}  // namespace trainctl
