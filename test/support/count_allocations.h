// Counts calls of operator new, for tests that a step makes none.
#pragma once

#include <cstdint>

namespace trainctl::test {

// Number of calls so far, on any thread, by this program's own code; those of shared libraries (oneDNN, OpenMP) do not
// count.
std::int64_t allocations_of_ours();

}  // namespace trainctl::test
