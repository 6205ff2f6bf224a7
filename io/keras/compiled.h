// Translates the settings with which a Keras network was compiled to keys of `train`.
#pragma once

#include <string>
#include <vector>

#include "core/base/document.h"
#include "core/base/json_fwd.h"

namespace trainctl {

struct CompiledWith {
  Node train;                      // a map: loss, metrics, optimizer
  std::vector<std::string> other;  // settings without a counterpart, as "loss: ..."
};

// Translates loss, metrics and optimizer of a network with one output, as far as trainctl has the same names and
// options. `compile_config` is as Keras saves it, or null.
CompiledWith compiled_with(const Json& compile_config);

}  // namespace trainctl
