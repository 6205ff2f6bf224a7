// Lists the preset networks with their sizes.
#pragma once

#include <string>

#include "core/base/json_fwd.h"

namespace trainctl {

// Return the presets as text, a line for each, and as [{name, shape, parameters, flops_per_sample}], with the FLOPs of
// a forward pass.
std::string presets_text();
Json presets_json();

}  // namespace trainctl
