// What a network of Keras' was compiled with, as keys of `train`.
#pragma once

#include <string>
#include <vector>

#include "core/base/document.h"
#include "core/base/json_fwd.h"

namespace trainctl {

struct CompiledWith {
  Node train;                      // a map: loss, metrics, optimizer
  std::vector<std::string> other;  // what the config leaves out, in words
};

// Loss, metrics and optimizer of a network with one output, as far as they have the same names and options here.
// `compile_config` is as Keras saves it, or null.
CompiledWith compiled_with(const Json& compile_config);

}  // namespace trainctl
