// The memory of this machine.
#pragma once

#include <cstdint>
#include <optional>

namespace trainctl {

// Bytes that this process may still allocate: what the machine has available and its control group allows; nothing
// where that cannot be found out.
std::optional<std::int64_t> available_memory();

}  // namespace trainctl
