// The cores on which this process may run.
#pragma once

#include <sched.h>

namespace trainctl {

// The number of cores that this process may use, at least 1.
inline int usable_cores() {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

}  // namespace trainctl
