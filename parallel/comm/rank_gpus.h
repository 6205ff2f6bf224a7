// The GPUs of all ranks, exchanged, and the transport that follows from them.
#pragma once

#include <string>
#include <vector>

#include "core/backend/communicator.h"
#include "parallel/comm/transport.h"

namespace trainctl {

struct RankGpu {
  std::string host;   // of the rank
  std::string uuid;   // of its GPU; "": it has none
  std::string model;  // "NVIDIA H100 80GB HBM3"
  int numa_node = -1;
  std::string why_not;  // without a GPU: why; else why NCCL cannot be used, "" where it can. Cut to 255 bytes.
};

// Every rank's. Collective.
std::vector<RankGpu> exchange_gpus(const RankGpu& own, Communicator& world, Stream& stream);

// Whether all ranks have a GPU, or none has. Throws CollectiveError{resource} that names them where only some have.
bool all_have_gpus(const std::vector<RankGpu>& ranks);

struct TransportChoice {
  Transport transport = Transport::staged;  // nccl or staged
  std::string why_staged;
};

// NCCL wants a GPU for each rank. Throws CollectiveError{config} that names two ranks and their GPU where it was asked
// for and they share one, CollectiveError{resource} where a rank cannot use it.
TransportChoice choose_transport(Transport asked, const std::vector<RankGpu>& ranks);

// A rank's number among, and the number of, those on its host whose GPUs are on the same NUMA node.
struct Neighbours {
  int index = 0, count = 1;
};
Neighbours neighbours_of(int rank, const std::vector<RankGpu>& ranks);

// "rank 3 computes on NVIDIA A100, rank 0 on NVIDIA H100"; "" where all are of one model.
std::string different_models(const std::vector<RankGpu>& ranks);

}  // namespace trainctl
