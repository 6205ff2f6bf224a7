// Jobs of a SLURM array: each trains a run of its own.
#pragma once

#include <string>

#include "parallel/launch/variables.h"

namespace trainctl {

// The name of a run that a config calls `name`: "<name>-task-<N>" in task N of an array, else the name itself.
inline std::string name_in_array(const std::string& name, const Variables& variables) {
  const auto task = variables.number("SLURM_ARRAY_TASK_ID");
  return task ? name + "-task-" + std::to_string(*task) : name;
}

}  // namespace trainctl
