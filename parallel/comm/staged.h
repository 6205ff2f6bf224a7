// The communicator of devices through the memory of their hosts: slow, but any number of ranks can share a device, and
// nothing but the host's communicator is needed.
#pragma once

#include <memory>

#include "core/backend/backend.h"
#include "core/backend/communicator.h"

namespace trainctl {

// Between the devices of the ranks of `host`, which it keeps for itself: deadline, errors and the order of sums are the
// host's. Calls are asynchronous where the backend is; a failure surfaces in the next wait for any of its streams.
std::unique_ptr<Communicator> staged_communicator(std::unique_ptr<Communicator> host, Backend& backend);

}  // namespace trainctl
