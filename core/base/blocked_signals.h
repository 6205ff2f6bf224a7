// A guard under which threads start with all signals blocked, so that the main thread alone receives signals.
#pragma once

#include <pthread.h>
#include <signal.h>

namespace trainctl {

// Blocks all signals in the calling thread while the object exists. A thread that is started in that time inherits the
// mask and keeps it.
class BlockedSignals {
 public:
  BlockedSignals() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~BlockedSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

 private:
  sigset_t before_;
};

}  // namespace trainctl
