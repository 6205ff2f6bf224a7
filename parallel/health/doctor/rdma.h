// The devices of this host for remote direct memory access (RDMA), as Linux lists them.
#pragma once

#include <string>

#include "core/base/json_fwd.h"

namespace trainctl {

// Returns {devices: [{name, link, active}...], peer_memory}. `link`: "InfiniBand", or "Ethernet" for RoCE; `active`:
// whether a port is active; `peer_memory`: whether the module that gives the devices access to the GPUs' memory is
// loaded. `root`: the folder that contains /sys, "" except in tests.
Json rdma_info(const std::string& root = "");

}  // namespace trainctl
