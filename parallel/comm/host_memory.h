// Private memory of this process for communicators.
#pragma once

#include "core/backend/memory.h"

namespace trainctl {

// Zeroed, aligned to pages. Throws Error{resource}.
Memory allocate_host(std::int64_t bytes);

}  // namespace trainctl
