// The machine that this process runs on, as the plan sees it.
#pragma once

#include <memory>

#include "core/backend/backend.h"
#include "parallel/plan/costs.h"

namespace trainctl {

// The costs of a rank with so many threads on this machine, found out by measuring for a few seconds.
std::unique_ptr<Costs> costs_of_this_machine(Backend& backend, int threads, bool tf32);

}  // namespace trainctl
