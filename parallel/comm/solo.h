// The communicator of a rank that is alone: every collective is already done.
#pragma once

#include <memory>

#include "core/backend/backend.h"
#include "core/backend/communicator.h"

namespace trainctl {

// In the host's memory.
std::unique_ptr<Communicator> solo_communicator();

// In the device's memory: queues nothing, so that it can be part of recordings.
std::unique_ptr<Communicator> solo_communicator(Backend& backend);

}  // namespace trainctl
