// The CPU backend: oneDNN's primitives and the project's own kernels as a Backend.
#pragma once

#include <memory>

#include "core/backend/backend.h"

namespace trainctl {

// Makes the backend; `options.threads` must be at least 1. The thread that runs the rank must call this function and
// use the backend: the call sets that thread's number of OpenMP threads, and makes the thread and its OpenMP workers
// flush denormals to zero.
std::unique_ptr<Backend> make_cpu_backend(const BackendOptions& options);

}  // namespace trainctl
