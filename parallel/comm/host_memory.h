// Allocates private memory of this process for communicators.
#pragma once

#include "core/backend/memory.h"

namespace trainctl {

// Allocates zeroed, page-aligned memory. Throws Error{resource}.
Memory allocate_host(std::int64_t bytes);

}  // namespace trainctl
