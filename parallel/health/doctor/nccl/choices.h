// NCCL's choices of links between the ranks: gathered from the logs of all ranks, judged, and shown.
#pragma once

#include <string>
#include <vector>

#include "core/base/json_fwd.h"
#include "parallel/health/doctor/doctor.h"

namespace trainctl {

struct NcclLog;

// Returns the choices in one rank's log: {why_not_shown, version, network, devices, gpudirect_rdma,
// gpudirect_rdma_too_far, dma_buf, nvlink_multicast, variables, connections}. A connection is {from, to, side, via,
// link, device, gpudirect_rdma, channels}. If `why_not` is not empty, or the log names no connection, it returns only
// {why_not_shown}.
Json nccl_choices(const NcclLog& log, const std::string& why_not);

// Names the links of connections by which a GPU accesses another GPU's memory: "NVLink", "PCIe", or "GPU memory" if it
// is not known. NCCL's log does not name them, the driver does. `info`: the information about every rank, in the order
// of ranks, with its choices in the field "nccl".
void name_gpu_links(std::vector<Json>& info);

// Finds slow choices although a faster link exists, and their remedies. `info`: see name_gpu_links().
std::vector<Problem> find_slow_links(const std::vector<Json>& info);

}  // namespace trainctl
