// Replaces NCCL if its header was missing when trainctl was built.
#include "core/base/error.h"
#include "parallel/comm/nccl/nccl.h"

namespace trainctl {

LibraryVersion nccl_version() { return {"NCCL", "", ""}; }

bool nccl_shares_gpus() { return false; }

std::string why_no_nccl() { return "this build of trainctl does not include NCCL"; }

std::unique_ptr<Communicator> nccl_communicator(std::unique_ptr<Communicator>, Backend&, bool) {
  throw Error(ErrorKind::resource, why_no_nccl(), "set cluster.communication to auto or staged");
}

}  // namespace trainctl
