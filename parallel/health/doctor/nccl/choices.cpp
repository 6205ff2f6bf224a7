// Lets NCCL connect the ranks, and gathers its choices of links from the logs of all ranks.
#include "parallel/health/doctor/nccl/choices.h"

#include <map>

#include "core/backend/backend.h"
#include "core/backend/communicator.h"
#include "core/backend/stream.h"
#include "core/base/json.h"
#include "parallel/comm/select.h"
#include "parallel/comm/text.h"
#include "parallel/health/doctor/gpus.h"
#include "parallel/health/doctor/nccl/capture.h"
#include "parallel/health/doctor/nccl/log.h"

namespace trainctl {
namespace {

// NCCL connects the links of an algorithm before its first use. This size is above the sizes that NCCL sends by the
// algorithms for short messages.
constexpr std::int64_t large_bytes = 16 << 20;

void all_reduce_once(Communicator& gpus, Backend& backend) {
  const Memory memory = backend.allocate(large_bytes);
  const auto stream = backend.asynchronous_stream();
  gpus.all_reduce({memory.get(), DType::float32, large_bytes / size_of(DType::float32)}, Reduction::maximum, *stream);
  stream->synchronize();
}

std::string link_of(const NcclConnection& connection, const NcclDevice* device) {
  switch (connection.transport) {
    case NcclTransport::peer:
      return "GPU memory";
    case NcclTransport::host_memory:
      return "host memory";
    case NcclTransport::network:
      if (connection.network == "Socket") return "TCP";
      if (device != nullptr && device->link == "IB") return "InfiniBand";
      if (device != nullptr && !device->link.empty()) return device->link;
      return connection.network;
    case NcclTransport::other:
      break;
  }
  return connection.via;
}

// Returns how the driver connects the GPUs of two ranks of one host, as in the field "links": "NVLink", "P2P", ...
class GpuLinks {
 public:
  explicit GpuLinks(const std::vector<Json>& info) : info_(info) {}

  std::string between(const Json& one, const Json& other) {
    const std::string host = one["host"];
    const auto known = hosts_.find(host);
    const std::vector<HostGpu>& gpus =
        known != hosts_.end() ? known->second : hosts_.emplace(host, gpus_of_host(info_, host)).first->second;
    for (const HostGpu& gpu : gpus) {
      if (gpu.info["uuid"] != one["gpu"]) continue;
      for (std::size_t i = 0; i < gpus.size() && i < gpu.links.size(); ++i) {
        if (gpus[i].info["uuid"] == other["gpu"]) return gpu.links[i];
      }
    }
    return "?";
  }

 private:
  const std::vector<Json>& info_;
  std::map<std::string, std::vector<HostGpu>> hosts_;
};

}  // namespace

Json nccl_choices(const NcclLog& log, const std::string& why_not) {
  if (!why_not.empty()) return {{"why_not_shown", why_not}};
  if (log.connections.empty()) return {{"why_not_shown", "NCCL's log names no connection between ranks"}};
  Json devices = Json::array(), connections = Json::array();
  for (const NcclDevice& device : log.devices) {
    if (is_same_nccl_network(device.network, log.network)) devices.push_back(device.name);
  }
  for (const NcclConnection& connection : log.connections) {
    const NcclDevice* device = log.device_of(connection);
    connections.push_back(
        {{"from", connection.from},
         {"to", connection.to},
         {"side", connection.of_receiver ? "receiver" : "sender"},
         {"via", connection.via},
         {"link", link_of(connection, device)},
         {"gpu_link", nullptr},
         {"device", device == nullptr ? Json() : Json(device->name)},
         {"gpudirect_rdma", connection.transport == NcclTransport::network ? Json(connection.gpudirect) : Json()},
         {"channels", connection.channels}});
  }
  const auto optional = [](const std::optional<bool>& value) { return value ? Json(*value) : Json(); };
  return {{"why_not_shown", ""},
          {"version", log.version},
          {"network", log.network},
          {"devices", std::move(devices)},
          {"gpudirect_rdma", optional(log.gpudirect)},
          {"gpudirect_rdma_too_far", log.gpudirect_too_far},
          {"dma_buf", log.dma_buf},
          {"nvlink_multicast", optional(log.multicast)},
          {"variables", log.variables},
          {"connections", std::move(connections)}};
}

void name_gpu_links(std::vector<Json>& info) {
  const std::vector<Json> before = info;
  GpuLinks links(before);
  for (Json& rank : info) {
    if (!rank.contains("nccl") || !rank["nccl"].contains("connections")) continue;
    for (Json& connection : rank["nccl"]["connections"]) {
      const auto from = connection["from"].get<std::size_t>(), to = connection["to"].get<std::size_t>();
      if (from >= before.size() || to >= before.size()) continue;
      const bool one_host = before[from]["host"] == before[to]["host"];
      const std::string link = one_host ? links.between(before[from], before[to]) : "";
      if (one_host) connection["gpu_link"] = link;
      if (connection["link"] != "GPU memory") continue;
      // Between hosts only NVLink gives access to the memory of a GPU.
      if (!one_host || link == "NVLink") connection["link"] = "NVLink";
      if (link == "P2P") connection["link"] = "PCIe";
    }
  }
}

std::vector<Problem> add_nccl_choices(const NcclLogCapture& capture, Communicator& gpus, Backend& backend, World& world,
                                      Stream& host, std::vector<Json>& info) {
  all_reduce_once(gpus, backend);
  const std::string why_not = capture.why_not();
  const Json own = nccl_choices(parse_nccl_log(capture.text()), why_not);
  const std::vector<std::string> all = gather_texts(json_text(own), world.communicator(), host);
  for (std::size_t rank = 0; rank < all.size(); ++rank) info[rank]["nccl"] = parse_json(all[rank]);
  if (all.empty()) return {};
  name_gpu_links(info);
  return find_slow_links(info);
}

}  // namespace trainctl
