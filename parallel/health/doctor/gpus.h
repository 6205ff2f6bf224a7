// The GPUs of a host, merged from the lists of its ranks.
#pragma once

#include <string>
#include <vector>

#include "core/base/json.h"

namespace trainctl {

struct HostGpu {
  Json info;             // info from the first rank that lists the GPU
  std::string ranks;     // ranks that compute on it, such as "0, 4"
  bool visible = false;  // whether CUDA shows it to some rank
  // Connection to each GPU of the host: "NVLink", "P2P", "host"; "-": the GPU itself; "?": unknown.
  std::vector<std::string> links;
};

// The GPUs of a host without duplicates, identified by their UUIDs, in the order of the ranks' lists.
std::vector<HostGpu> gpus_of_host(const std::vector<Json>& info, const std::string& host);

}  // namespace trainctl
