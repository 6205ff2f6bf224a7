// The log of the emulated NCCL, in the form of NCCL 2.28.
//
// With NCCL_DEBUG=INFO a communicator writes to the file NCCL_DEBUG_FILE, or to the standard output, how it connects
// its ranks in a ring. TRAINCTL_EMULATED_NCCL_TRANSPORT is the transport: "P2P" (the default), "SHM", "NET/Socket",
// "NET/IB", or "none" for an empty log. NCCL_P2P_DISABLE=1 replaces P2P by SHM.
#pragma once

namespace emulated {

void log_connections(int rank, int ranks, int device);

}  // namespace emulated
