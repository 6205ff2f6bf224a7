// The choices of links that NCCL writes to its log (NCCL_DEBUG=INFO) when it connects ranks. Reads text only.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace trainctl {

// How NCCL moves the data of a connection.
enum class NcclTransport {
  peer,         // one GPU accesses the memory of the other GPU: by NVLink or PCIe, which the log does not say
  host_memory,  // both GPUs access a buffer in the memory of their host
  network,
  other
};

// A connection from one rank to another. A network connection has two: that of the sender and that of the receiver.
struct NcclConnection {
  int from = 0, to = 0;
  bool of_receiver = false;
  NcclTransport transport = NcclTransport::other;
  std::string via;         // NCCL's name, such as "P2P/CUMEM/read", "SHM/direct/direct" or "NET/IB/0/GDRDMA"
  std::string network;     // "IB", "Socket" or the name of a plugin; "" for the other transports
  int device = -1;         // number of the network's device
  bool gpudirect = false;  // whether the device accesses the memory of the GPU
  int channels = 0;
};

// A device of a network, such as {"IB", 0, "mlx5_0", "IB"} or {"Socket", 0, "eth0", ""}.
struct NcclDevice {
  std::string network;
  int number = 0;
  std::string name;
  std::string link;  // "IB", "RoCE" or ""
};

struct NcclLog {
  std::string version;  // "2.28.9+cuda13.0"
  std::string network;  // the network that NCCL uses between hosts: "IB", "Socket" or the name of a plugin
  std::vector<NcclDevice> devices;
  std::map<std::string, std::string> variables;  // NCCL's variables that are set, by the environment or a file
  std::optional<bool> multicast;                 // whether the GPU's NVLinks multicast (NVLS); none: not in the log
  bool dma_buf = false;                          // whether the GPU's memory can be shared with devices by DMA-BUF
  std::optional<bool> gpudirect;   // whether some device of the network can access a GPU's memory; none: not in the log
  bool gpudirect_too_far = false;  // whether NCCL does not let a device access a GPU because the path is too long
  std::vector<NcclConnection> connections;

  // Returns the device of a network connection; null if the log does not name it.
  const NcclDevice* device_of(const NcclConnection& connection) const;
};

// Parses the log of one rank, of NCCL 2.14 and later. Ignores lines of other forms.
NcclLog parse_nccl_log(std::string_view text);

// Whether two names mean the same network; plugins name InfiniBand "IBext_v8" or similarly.
bool is_same_nccl_network(std::string_view one, std::string_view other);

}  // namespace trainctl
