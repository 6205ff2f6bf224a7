// The networks of configs/models, each with its parameters and FLOPs.
#pragma once

#include <string>

#include "core/base/json_fwd.h"

namespace trainctl {

// A line for each; [{name, shape, parameters, flops_per_sample}] of a forward pass.
std::string presets_text();
Json presets_json();

}  // namespace trainctl
