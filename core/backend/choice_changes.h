// Which kernels two runs chose differently, from the text form of their choices.
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

// The computations that stand in both lists (KernelChoices::text()) with different implementations, bytewise by key.
// Lines that cannot be read are left out.
std::vector<ChangedChoice> changed_choices(std::string_view before, std::string_view now);

// The hash of a device's kernels, 16 hexadecimal digits: equal hashes mean equal devices, library versions and choices.
std::string kernel_hash(std::string_view device, std::string_view choices);

}  // namespace trainctl
