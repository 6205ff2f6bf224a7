// Raises and checks the stack size limits of this process.
#pragma once

namespace trainctl {

// Raises a small stack size limit (ulimit -s) to 8 MiB, as far as permitted, for the threads of this process and the
// programs that it starts. Must be called at the start of main(): running threads keep their stack size.
void prepare_stack();

// Throws Error{resource} if the main thread's stack is smaller than this program needs.
void require_stack();

}  // namespace trainctl
