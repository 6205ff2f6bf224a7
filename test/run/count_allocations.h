// Counts calls of operator new, so that tests can show that the step's path makes none.
#pragma once

#include <cstdint>

namespace trainctl::test {

// Calls so far, on any thread, made by this program's own code; a shared library's (oneDNN, OpenMP) do not count.
std::int64_t allocations_of_ours();

}  // namespace trainctl::test
