// The signals that a supervisor, or another command with children, waits for.
#pragma once

#include <signal.h>

namespace trainctl {

// While the object lives, the signals come through its descriptor and do nothing else; requests to stop are ignored
// from its end on. Signals that otherwise end a process are among them, so that none leaves children and temporary
// files behind. Also makes this process the parent of what its children leave behind.
class Signals {
 public:
  Signals();
  ~Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  int descriptor() const { return descriptor_; }
  // The next one that has arrived, or 0.
  int next() const;

 private:
  sigset_t previous_{};
  int descriptor_ = -1;
};

// Whether nobody sends this signal for a purpose here, and it ends a process unless that handles it.
bool is_other_end(int number);

}  // namespace trainctl
