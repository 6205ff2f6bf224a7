// Lets a thread work in the background of threads that compute.
#pragma once

#include <sched.h>

namespace trainctl {

// Makes the calling thread a batch thread: when it wakes up, it does not interrupt a thread that computes. If the
// system refuses, the thread is scheduled as before. The thread keeps its priority: with a lower one, ranks that wait
// actively for a save would take the core from the thread that saves.
inline void work_in_background() {
  const sched_param none{};
  sched_setscheduler(0, SCHED_BATCH, &none);  // 0: the calling thread
}

}  // namespace trainctl
