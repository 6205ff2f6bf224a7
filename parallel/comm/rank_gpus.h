// Exchanges the GPUs of all ranks and chooses the transport between them.
#pragma once

#include <string>
#include <vector>

#include "core/backend/communicator.h"
#include "parallel/comm/transport.h"

namespace trainctl {

// What to do if NCCL refuses ranks that share a GPU.
inline constexpr const char* when_gpus_are_shared =
    "ask for fewer ranks, or set cluster.communication to auto or staged; NCCL 2.30 and later versions let ranks "
    "share a GPU if NCCL_MULTI_RANK_GPU_ENABLE=1 is set";

struct RankGpu {
  std::string host;   // host name of the rank
  std::string uuid;   // UUID of the rank's GPU; "": the rank has no GPU
  std::string model;  // for example "NVIDIA H100 80GB HBM3"
  int numa_node = -1;
  std::string why_not;     // why the rank has no GPU or cannot use NCCL; "" if it can. Cut to 255 bytes.
  bool can_share = false;  // whether the rank's NCCL lets several ranks use one GPU
};

// Returns the GPUs of all ranks. All ranks must call this function.
std::vector<RankGpu> exchange_gpus(const RankGpu& own, Communicator& world, Stream& stream);

// Returns true if all ranks have a GPU, false if no rank has one. If only some ranks have a GPU, throws
// CollectiveError{resource}, which names a rank with and a rank without a GPU.
bool all_have_gpus(const std::vector<RankGpu>& ranks);

struct TransportChoice {
  Transport transport = Transport::staged;  // nccl or staged, never automatic
  std::string why_staged;
};

// NCCL requires a GPU for each rank, unless all ranks can share GPUs. If `asked` is NCCL, throws
// CollectiveError{config}, which names two ranks, if ranks share a GPU, and CollectiveError{resource} if a rank cannot
// use NCCL.
TransportChoice choose_transport(Transport asked, const std::vector<RankGpu>& ranks);

// The ranks of a host with GPUs on the same NUMA node: this rank's number among them, and their number.
struct Neighbours {
  int index = 0, count = 1;
};
Neighbours neighbours_of(int rank, const std::vector<RankGpu>& ranks);

// Describes the first rank with another GPU model than rank 0, such as "rank 3 computes on NVIDIA A100, rank 0 on
// NVIDIA H100"; "" if all models are equal.
std::string different_models(const std::vector<RankGpu>& ranks);

}  // namespace trainctl
