// The signal handlers behind StopRequest.
#include "parallel/launch/stop.h"

#include <signal.h>
#include <unistd.h>

#include <array>

namespace trainctl {
namespace {

constexpr std::array<int, 4> stop_signals = {SIGUSR1, SIGTERM, SIGHUP, SIGINT};

// A handler reaches nothing else than variables of the whole process.
volatile sig_atomic_t requested = 0;
volatile sig_atomic_t interrupted = 0;
std::array<struct sigaction, stop_signals.size()> previous;

void on_signal(int signal) {
  if (signal == SIGINT) {
    if (interrupted != 0) _exit(130);
    interrupted = 1;
  }
  requested = 1;
}

}  // namespace

StopRequest::StopRequest() {
  requested = 0;
  interrupted = 0;
  for (std::size_t i = 0; i < stop_signals.size(); ++i) {
    struct sigaction action {};
    action.sa_handler = on_signal;
    action.sa_flags = SA_RESTART;
    sigemptyset(&action.sa_mask);
    sigaction(stop_signals[i], &action, &previous[i]);
    if (stop_signals[i] == SIGHUP && previous[i].sa_handler == SIG_IGN) sigaction(SIGHUP, &previous[i], nullptr);
  }
}

StopRequest::~StopRequest() {
  for (std::size_t i = 0; i < stop_signals.size(); ++i) sigaction(stop_signals[i], &previous[i], nullptr);
}

bool StopRequest::pending() const { return requested != 0; }

}  // namespace trainctl
