// The GPUs of a host, put together from what each of its ranks may see.
#pragma once

#include <string>
#include <vector>

#include "core/base/json.h"

namespace trainctl {

struct HostGpu {
  Json info;                       // as the first rank that sees it says
  std::string ranks;               // that compute on it: "0, 4"
  bool visible = false;            // to some rank's CUDA
  std::vector<std::string> links;  // to each of the host's GPUs: "NVLink", "P2P", "host"; "-": itself; "?": not known
};

// Each once, known by its UUID, in the order in which ranks list them.
std::vector<HostGpu> gpus_of_host(const std::vector<Json>& info, const std::string& host);

}  // namespace trainctl
