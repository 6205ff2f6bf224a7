// Lets a thread work in the background of threads that compute.
#pragma once

#include <sched.h>

namespace trainctl {

// Makes the calling thread one that never interrupts a thread that computes when it wakes up, and that gets its share
// of a core otherwise. If the system refuses, the thread is scheduled as before. (With a lower priority, too, a thread
// that saves is starved by ranks that wait for it.)
inline void work_in_background() {
  const sched_param none{};
  sched_setscheduler(0, SCHED_BATCH, &none);  // 0: the calling thread
}

}  // namespace trainctl
