// Shields a launcher from requests to stop that reach every process of a run at once: systemd's stop, a machine that is
// preempted, scancel. The ranks save on such a request, and a launcher that obeyed it would kill them meanwhile.
//
// Part of the library that is preloaded (LD_PRELOAD) into mpirun, its daemons, and the programs by which it starts
// these (ssh, srun). Their supervisor ends them by SIGKILL, and relays requests by SIGUSR1. Needs the C library alone.
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

// srun takes the signals that it has blocked by sigwait(), and kills its tasks for these.
extern "C" __attribute__((visibility("default"))) int sigwait(const sigset_t* set, int* number) {
  const auto next = reinterpret_cast<SigWait>(dlsym(RTLD_NEXT, "sigwait"));
  sigset_t others = *set;
  for (const int each : shielded) sigdelset(&others, each);
  return next(&others, number);
}
