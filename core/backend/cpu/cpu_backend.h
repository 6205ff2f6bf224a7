// The CPU interpreter: oneDNN's primitives and our own kernels behind the Backend interface.
#pragma once

#include <memory>

#include "core/backend/backend.h"

namespace trainctl {

// `options.threads` is at least 1. To be made and used on the thread that runs the rank: it sets that thread's number
// of OpenMP threads, and makes it and its OpenMP workers flush denormals to zero.
std::unique_ptr<Backend> make_cpu_backend(const BackendOptions& options);

}  // namespace trainctl
