// Receives the signals that a supervisor, or another command with children, waits for.
#pragma once

#include <signal.h>

#include <functional>
#include <utility>

namespace trainctl {

// While the object exists, the signals are only delivered through its descriptor; after its destruction requests to
// stop are ignored. SIGTSTP (Ctrl-Z) still suspends the process. Includes all signals that would end a process and
// leave its children and temporary files. Also makes this process the parent of orphaned descendants.
class Signals {
 public:
  Signals();
  ~Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  int descriptor() const { return descriptor_; }
  // Returns the next signal that has arrived, or 0. Suspends the process if SIGTSTP has arrived.
  int next() const;
  // Returns the next signal that has arrived, also SIGTSTP, or 0. Any thread may call it.
  int take() const;
  // Suspends the process, as SIGTSTP does; returns after SIGCONT.
  void suspend() const;
  // Sets a function that is called before SIGTSTP suspends the process; empty: none.
  void before_suspension(std::function<void()> call) { before_suspension_ = std::move(call); }

 private:
  sigset_t previous_{};
  int descriptor_ = -1;
  std::function<void()> before_suspension_;
};

// Returns whether a signal has no purpose here, but would end a process that does not handle it.
bool is_other_fatal_signal(int number);

}  // namespace trainctl
