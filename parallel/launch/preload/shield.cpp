// Blocks stop signals in a launcher that are sent to every process of a run together: by systemd, by scancel, or when a
// machine is preempted. The ranks save on such a signal; a launcher that obeyed the signal would kill the ranks before
// they have saved.
//
// Part of the library that is preloaded (LD_PRELOAD) into mpirun, its daemons, and the programs that start the daemons
// (ssh, srun). The supervisor ends these processes by SIGKILL, and relays requests to stop by SIGUSR1. Uses only the C
// library.
#include <dlfcn.h>
#include <signal.h>

namespace {

using SigWait = int (*)(const sigset_t*, int*);

constexpr int shielded[] = {SIGTERM, SIGINT, SIGHUP};

__attribute__((constructor)) void block_requests() {
  sigset_t requests;
  sigemptyset(&requests);
  for (const int number : shielded) sigaddset(&requests, number);
  sigprocmask(SIG_BLOCK, &requests, nullptr);
}

}  // namespace

// srun receives its blocked signals by sigwait(), and would kill its tasks on a stop signal.
extern "C" __attribute__((visibility("default"))) int sigwait(const sigset_t* set, int* number) {
  const auto next = reinterpret_cast<SigWait>(dlsym(RTLD_NEXT, "sigwait"));
  sigset_t others = *set;
  for (const int each : shielded) sigdelset(&others, each);
  return next(&others, number);
}
