// Receives signals through a descriptor.
#include "parallel/launch/supervisor/signals.h"

#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "parallel/launch/ranks/stop.h"

namespace trainctl {
namespace {

std::vector<int> other_fatal_signals() {
  std::vector<int> numbers = {SIGQUIT, SIGUSR2, SIGALRM, SIGVTALRM, SIGPROF, SIGIO, SIGPWR, SIGSTKFLT, SIGXCPU};
  for (int number = SIGRTMIN; number <= SIGRTMAX; ++number) numbers.push_back(number);
  return numbers;
}

}  // namespace

bool is_other_fatal_signal(int number) {
  const std::vector<int> numbers = other_fatal_signals();
  return std::find(numbers.begin(), numbers.end(), number) != numbers.end();
}

Signals::Signals() {
  signal(SIGCHLD, SIG_DFL);  // if SIGCHLD is ignored, as some shells leave it, this process cannot wait for children
  sigset_t set;
  sigemptyset(&set);
  for (int number : {SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGTSTP}) sigaddset(&set, number);
  for (int number : other_fatal_signals()) sigaddset(&set, number);
  sigprocmask(SIG_BLOCK, &set, &previous_);
  descriptor_ = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  prctl(PR_SET_CHILD_SUBREAPER, 1);
}

Signals::~Signals() {
  prctl(PR_SET_CHILD_SUBREAPER, 0);
  close(descriptor_);
  ignore_requests();
  sigprocmask(SIG_SETMASK, &previous_, nullptr);
}

int Signals::next() const {
  while (const int number = take()) {
    if (number != SIGTSTP) return number;
    suspend();
  }
  return 0;
}

int Signals::take() const {
  signalfd_siginfo info{};
  return read(descriptor_, &info, sizeof info) == sizeof info ? static_cast<int>(info.ssi_signo) : 0;
}

// Lets SIGTSTP have its usual effect.
void Signals::suspend() const {
  if (before_suspension_) before_suspension_();
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTSTP);
  raise(SIGTSTP);
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

}  // namespace trainctl
