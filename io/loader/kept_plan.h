// The transforms of a trained network's inputs, from the config and what the run kept.
#pragma once

#include "io/loader/inputs/input_plan.h"
#include "io/loader/inputs/kept_input.h"

namespace trainctl {

// The plan of an input, which has this name, for samples that are stored in this dtype. Throws Error{data}
// where the run lacks what `normalize: measured` measured.
InputPlan kept_plan(const DataOptions& options, const std::string& name, const KeptInput& kept, DType stored);

}  // namespace trainctl
