// N ranks in one process, for tests: each is used by a thread of its own.
#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "core/backend/communicator.h"

namespace trainctl {

// Communicators of ranks 0 to ranks - 1. abort() of one throws Error{peer} in its thread, and the others' next waits
// end with Error{peer} too; the process lives on.
// `deadline`: of all waits for other ranks; zero: none.
std::vector<std::unique_ptr<Communicator>> thread_communicators(int ranks, std::chrono::milliseconds deadline = {});

}  // namespace trainctl
