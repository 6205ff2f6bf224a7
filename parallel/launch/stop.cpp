// The signal handlers behind requests to stop.
#include "parallel/launch/stop.h"

#include <signal.h>
#include <unistd.h>

#include <array>
#include <utility>

namespace trainctl {
namespace {

constexpr std::array<int, 4> stop_signals = {SIGUSR1, SIGTERM, SIGHUP, SIGINT};

// A handler reaches nothing else than variables of the whole process.
volatile sig_atomic_t requested = 0;
volatile sig_atomic_t interrupted = 0;
const char* volatile message = nullptr;
volatile std::size_t message_size = 0;
volatile int message_descriptor = -1;

[[noreturn]] void exit_at_once() {
  if (message != nullptr && write(message_descriptor, message, message_size) < 0) {  // nobody is left to tell
  }
  _exit(130);
}

void end_process(int) { exit_at_once(); }

void note(int signal) {
  if (signal == SIGINT) {
    if (interrupted != 0) exit_at_once();
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
}

}  // namespace

StopAtOnce::StopAtOnce(int descriptor, std::string text) : message_(std::move(text)) {
  message = message_.data();
  message_size = message_.size();
  message_descriptor = descriptor;
  handle(end_process);
}

StopAtOnce::~StopAtOnce() {
  ignore_requests();
  message = nullptr;
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
