// Compares the kernel choices of two runs, given as text.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace trainctl {

struct ChangedChoice {
  std::string key;     // the computation
  std::string before;  // the implementation in the first list
  std::string now;     // the implementation in the second list
};

// Returns the computations that both lists (KernelChoices::text()) have with different implementations, in bytewise
// order of their keys. Skips lines that cannot be read.
std::vector<ChangedChoice> changed_choices(std::string_view before, std::string_view now);

// The hash of a device's kernels, 16 hexadecimal digits: equal hashes mean equal devices, library versions and choices.
std::string kernel_hash(std::string_view device, std::string_view choices);

}  // namespace trainctl
