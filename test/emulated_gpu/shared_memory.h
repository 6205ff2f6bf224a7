// The __shared__ variables of all kernels: the thread-local storage of the module.
#pragma once

namespace emulated {

// Fills the variables with NaN (all bits 1), as a block may find them.
void poison_shared_memory();

}  // namespace emulated
