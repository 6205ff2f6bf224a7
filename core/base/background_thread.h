// Lets a thread work in the background of threads that compute.
#pragma once

#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

namespace trainctl {

// Gives the calling thread a lower priority, so that it takes about a tenth of a core on which another thread computes,
// all of a core that is idle, and never interrupts a thread when it wakes up. If the system refuses, the thread keeps
// its priority.
inline void work_in_background() {
  constexpr int lower = 10;
  const sched_param none{};
  sched_setscheduler(0, SCHED_BATCH, &none);  // 0: the calling thread
  setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), lower);
}

}  // namespace trainctl
