// Machines by name or path, as `plan --machine` takes them.
#pragma once

#include <string>

#include "parallel/plan/machine.h"

namespace trainctl {

// `h100-node` is configs/machines/h100-node.yaml; a name with a slash or an ending is a path. Throws ConfigError with
// everything that is wrong in the file, or the machines that there are.
Machine load_machine(const std::string& name);

}  // namespace trainctl
