// Signal handlers for requests to stop.
#include "parallel/launch/ranks/stop.h"

#include <signal.h>
#include <unistd.h>

#include <array>
#include <utility>

namespace trainctl {
namespace {

constexpr std::array<int, 4> stop_signals = {SIGUSR1, SIGTERM, SIGHUP, SIGINT};

// Global variables, since a signal handler cannot access other variables.
volatile sig_atomic_t requested = 0;
volatile sig_atomic_t interrupted = 0;
const StopAtOnce::End* volatile first_end = nullptr;   // end of the first StopAtOnce, used after a second SIGINT
const StopAtOnce::End* volatile newest_end = nullptr;  // end of the newest StopAtOnce

[[noreturn]] void exit_at_once(const StopAtOnce::End* end) {
  if (end == nullptr) _exit(130);
  if (!end->message.empty() &&
      write(end->descriptor, end->message.data(), end->message.size()) < 0) {  // an error is ignored
  }
  _exit(end->exit_code);
}

void end_process(int) { exit_at_once(newest_end); }

void note(int signal) {
  if (signal == SIGINT) {
    if (interrupted != 0) exit_at_once(first_end);
    interrupted = 1;
  }
  requested = 1;
}

void handle(void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  for (int number : stop_signals) sigaddset(&action.sa_mask, number);
  for (int number : stop_signals) {
    struct sigaction before {};
    sigaction(number, &action, &before);
    if (number == SIGHUP && before.sa_handler == SIG_IGN) sigaction(SIGHUP, &before, nullptr);
  }
  sigprocmask(SIG_UNBLOCK, &action.sa_mask, nullptr);  // a shielded launcher may have blocked the signals
}

}  // namespace

StopAtOnce::StopAtOnce(int descriptor, std::string message, int exit_code)
    : end_{descriptor, std::move(message), exit_code} {
  if (first_end == nullptr) first_end = &end_;
  newest_end = &end_;
  handle(end_process);
}

StopAtOnce::~StopAtOnce() {
  ignore_requests();
  if (first_end == &end_) first_end = nullptr;
  newest_end = first_end;
}

StopRequest::StopRequest() {
  requested = 0;
  interrupted = 0;
  handle(note);
}

StopRequest::~StopRequest() { ignore_requests(); }

bool StopRequest::pending() const { return requested != 0; }

void ignore_requests() {
  for (int number : stop_signals) signal(number, SIG_IGN);
}

}  // namespace trainctl
