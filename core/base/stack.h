// The room that functions have for their variables.
#pragma once

namespace trainctl {

// Gives the threads of this process, and the programs that it starts, stacks of the usual size where a smaller limit
// (ulimit -s) can be raised. The first thing in main: threads that run already keep what they have.
void prepare_stack();

// Throws Error{resource} where the main thread's stack is smaller than this program needs.
void require_stack();

}  // namespace trainctl
