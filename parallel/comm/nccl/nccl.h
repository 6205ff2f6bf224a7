// Creates the communicator between GPUs, which uses NCCL.
#pragma once

#include <memory>
#include <string>

#include "core/backend/communicator.h"
#include "core/backend/device_module.h"

namespace trainctl {

class Backend;

// The versions of NCCL, see CudaModule::versions().
LibraryVersion nccl_version();
// See CudaModule for these functions.
std::string why_no_nccl();
bool nccl_shares_gpus();
std::unique_ptr<Communicator> nccl_communicator(std::unique_ptr<Communicator> host, Backend& backend, bool will_split);

}  // namespace trainctl
