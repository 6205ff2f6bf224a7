// The memory of this machine.
#pragma once

#include <cstdint>
#include <optional>

namespace trainctl {

// Bytes that this process may still allocate: the lesser of what the machine has available and what the control group
// allows. Empty where neither is known.
std::optional<std::int64_t> available_memory();

}  // namespace trainctl
