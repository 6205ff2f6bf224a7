// Finds NCCL's choices of slow links although a faster link exists, and says what to do.
#include <algorithm>
#include <initializer_list>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "core/base/format.h"
#include "core/base/json.h"
#include "parallel/health/doctor/nccl/choices.h"
#include "parallel/health/doctor/text_of.h"

namespace trainctl {
namespace {

using Pair = std::pair<int, int>;  // two ranks; the smaller is the first

// Returns "ranks 0 and 1", "ranks 0 and 1, 2 and 3" or "ranks 0 and 1, 2 and 3 and 5 more pairs".
std::string pairs_text(const std::set<Pair>& pairs) {
  constexpr std::size_t longest = 3;
  std::string all = "ranks ";
  std::size_t shown = 0;
  for (const auto& [one, other] : pairs) {
    if (shown == longest) break;
    all += format("{}{} and {}", shown == 0 ? "" : ", ", one, other);
    ++shown;
  }
  if (const std::size_t more = pairs.size() - shown; more > 0) {
    all += format(" and {} more pair{}", more, more == 1 ? "" : "s");
  }
  return all;
}

// Returns "unset NCCL_P2P_DISABLE (its value is 1)" for the first of the variables that is set and not 0; "" if there
// is none.
std::string unset_one_of(const Json& variables, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    const std::string value = text_of(variables.value(name, Json()));
    if (!value.empty() && value != "0") return format("unset {} (its value is {})", name, value);
  }
  return "";
}

std::string or_else(const std::string& text, const char* otherwise) { return text.empty() ? otherwise : text; }

// Pairs of ranks of one host whose data takes a detour.
struct Detour {
  std::string host, via, gpu_link;
  auto operator<=>(const Detour&) const = default;
};
struct DetourPairs {
  std::set<Pair> pairs;
  Json variables;  // of the first rank that reports one
};

Problem describe(const Detour& detour, const DetourPairs& found) {
  const std::string ranks = pairs_text(found.pairs);
  if (detour.via.starts_with("NET/")) {
    return {
        false, detour.host,
        format("NCCL sends the data of {} through the network ({}), although they are on one host", ranks, detour.via),
        or_else(unset_one_of(found.variables, {"NCCL_P2P_DISABLE", "NCCL_P2P_LEVEL", "NCCL_SHM_DISABLE"}),
                "run all ranks of a host in one container, or in containers that share memory and process numbers "
                "(docker run --ipc=host --pid=host)")};
  }
  const std::string by_variable = unset_one_of(found.variables, {"NCCL_P2P_DISABLE", "NCCL_P2P_LEVEL"});
  if (detour.gpu_link == "NVLink") {
    return {false, detour.host,
            format("NCCL moves the data of {} through the host's memory ({}), although NVLink connects their GPUs",
                   ranks, detour.via),
            or_else(by_variable,
                    "run all ranks of a host in one container (or with docker run --ipc=host --pid=host), and check "
                    "nvidia-smi topo -p2p rw and nvidia-smi nvlink -s")};
  }
  return {false, detour.host,
          format("NCCL moves the data of {} through the host's memory ({}), although their GPUs can access each "
                 "other's memory through PCIe",
                 ranks, detour.via),
          or_else(by_variable,
                  "NCCL avoids long paths through PCIe (nvidia-smi topo -m): NCCL_P2P_LEVEL=SYS permits them; compare "
                  "both with trainctl bench comm")};
}

void check_detours(const std::vector<Json>& info, std::vector<Problem>& problems) {
  std::map<Detour, DetourPairs> detours;
  for (const Json& rank : info) {
    const Json choices = rank.value("nccl", Json::object());
    for (const Json& connection : choices.value("connections", Json::array())) {
      const std::string gpu_link = text_of(connection["gpu_link"]), via = connection["via"];
      if (gpu_link.empty()) continue;  // the ranks are on different hosts
      const bool by_network = via.starts_with("NET/");
      const bool avoidable = connection["link"] == "host memory" && (gpu_link == "NVLink" || gpu_link == "P2P");
      if (!by_network && !avoidable) continue;
      DetourPairs& found = detours[{rank["host"], via, gpu_link}];
      const int from = connection["from"], to = connection["to"];
      found.pairs.insert(std::minmax(from, to));
      if (found.variables.is_null()) found.variables = choices["variables"];
    }
  }
  for (const auto& [detour, found] : detours) problems.push_back(describe(detour, found));
}

// Returns the names of a host's RDMA devices with an active port, such as "mlx5_0 (InfiniBand), mlx5_1 (Ethernet)".
std::string active_devices(const Json& rank) {
  std::string all;
  for (const Json& device : rank.value("rdma", Json::object()).value("devices", Json::array())) {
    if (!device["active"].get<bool>()) continue;
    all += format("{}{} ({})", all.empty() ? "" : ", ", text_of(device["name"]), text_of(device["link"]));
  }
  return all;
}

void check_sockets(const Json& rank, const Json& connection, std::vector<Problem>& problems) {
  const std::string devices = active_devices(rank), interface = text_of(connection["device"]);
  if (devices.empty()) return;
  problems.push_back(
      {false, rank["host"],
       format("NCCL uses TCP{}{} between hosts, although this host has active RDMA devices: {}",
              interface.empty() ? "" : " over ", interface, devices),
       or_else(
           unset_one_of(rank["nccl"]["variables"], {"NCCL_IB_DISABLE", "NCCL_NET", "NCCL_NET_PLUGIN", "NCCL_IB_HCA"}),
           "install libibverbs (rdma-core); in a container, permit the devices and locked memory (docker run "
           "--device /dev/infiniband --ulimit memlock=-1)")});
}

void check_gpudirect(const Json& rank, const Json& connection, std::vector<Problem>& problems) {
  const Json& choices = rank["nccl"];
  const std::string device = or_else(text_of(connection["device"]), "the network card");
  const std::string what =
      format("GPUDirect RDMA is off: data between the GPUs and {} passes through the host's memory", device);
  const std::string by_variable =
      unset_one_of(choices["variables"], {"NCCL_NET_GDR_DISABLE", "NCCL_NET_GDR_LEVEL", "NCCL_IB_GDR_LEVEL"});
  const bool has_module = rank.value("rdma", Json::object()).value("peer_memory", false);
  if (!by_variable.empty()) {
    problems.push_back({false, rank["host"], what, by_variable});
  } else if (choices["gpudirect_rdma_too_far"].get<bool>()) {
    problems.push_back({false, rank["host"], what + ", because NCCL finds the path between them too long",
                        "choose a card near the GPU (nvidia-smi topo -m, NCCL_IB_HCA), or permit longer paths by "
                        "NCCL_NET_GDR_LEVEL=SYS"});
  } else if (!has_module && !choices["dma_buf"].get<bool>()) {
    problems.push_back({false, rank["host"],
                        what + ": the module nvidia-peermem is not loaded, and DMA-BUF is not available",
                        "load the module (modprobe nvidia-peermem), or install the driver's open kernel modules"});
  } else {
    problems.push_back({false, rank["host"], what,
                        "check that the card supports it, and look for the reason in the log that "
                        "NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,NET shows"});
  }
}

// Reports slow networks between hosts, once for each host.
void check_networks(const std::vector<Json>& info, std::vector<Problem>& problems) {
  std::set<std::string> with_sockets, without_gpudirect;
  for (const Json& rank : info) {
    for (const Json& connection : rank.value("nccl", Json::object()).value("connections", Json::array())) {
      const std::string via = connection["via"];
      if (!connection["gpu_link"].is_null() || !via.starts_with("NET/")) continue;
      if (connection["link"] == "TCP") {
        if (with_sockets.insert(rank["host"]).second) check_sockets(rank, connection, problems);
      } else if (connection["gpudirect_rdma"] == false && without_gpudirect.insert(rank["host"]).second) {
        check_gpudirect(rank, connection, problems);
      }
    }
  }
}

}  // namespace

std::vector<Problem> find_slow_links(const std::vector<Json>& info) {
  std::vector<Problem> problems;
  check_detours(info, problems);
  check_networks(info, problems);
  return problems;
}

}  // namespace trainctl
