// The communicator of a rank that is alone: every collective is already done.
#pragma once

#include <memory>

#include "core/backend/communicator.h"

namespace trainctl {

std::unique_ptr<Communicator> solo_communicator();

}  // namespace trainctl
