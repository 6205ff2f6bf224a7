// The keys of a machine's file. Ranges are those of machines that exist, with room: a figure in another unit is
// outside.
#include "parallel/plan/machine.h"

namespace trainctl {
namespace {

constexpr double most_microseconds = 1e4;

void check_memory(const MachineDevice& device, const Node& node, Reader& reader) {
  constexpr std::int64_t least = 100'000'000, most = 100'000'000'000'000;
  if (device.memory.bytes >= least && device.memory.bytes <= most) return;
  reader.error(node.find("memory")->location,
               "memory must be from 100 MB to 100 TB, with its unit, not '" + to_string(device.memory) + "'");
}

}  // namespace

Keys<MachineDevice> MachineDevice::keys() {
  return Keys<MachineDevice>("device", "What one rank computes on.")
      .key("kind", &MachineDevice::kind,
           "gpu: communication runs beside computation, and batches wait in its memory; cpu: both share its cores.")
      .required("memory", &MachineDevice::memory, "Memory that a rank may use: `80 GB`.")
      .required("memory_bandwidth", &MachineDevice::memory_bandwidth, "Of that memory, in GB/s.", between(1, 1e5))
      .required("float32", &MachineDevice::float32, "Peak of float32 multiply-adds, in TFLOP/s.", between(0.001, 1e4))
      .key("tf32", &MachineDevice::tf32, "Peak of TF32 products without sparsity, in TFLOP/s; none: as float32.",
           between(0.001, 1e5))
      .key("bfloat16", &MachineDevice::bfloat16,
           "Peak of bfloat16 and float16 products without sparsity, in TFLOP/s; none: as float32.", between(0.001, 1e5))
      .key("compute_efficiency", &MachineDevice::compute_efficiency,
           "What products and convolutions attain of the peaks; more than 1 where Winograd's algorithm saves "
           "multiplications.",
           between(0.01, 2))
      .key("memory_efficiency", &MachineDevice::memory_efficiency, "What other ops attain of memory_bandwidth.",
           between(0.01, 1))
      .key("kernel_overhead", &MachineDevice::kernel_overhead, "Microseconds between two kernels.",
           between(0, most_microseconds))
      .check(check_memory);
}

Keys<MachineNode> MachineNode::keys() {
  return Keys<MachineNode>("node", "What joins the devices of a node.")
      .required("devices", &MachineNode::devices, "Devices of a node, each for one rank.", between(1, 1024))
      .required("link", &MachineNode::link,
                "GB/s that a device sends to others of its node, while it receives as many.", between(0.01, 1e4))
      .required("link_latency", &MachineNode::link_latency, "Microseconds of a message between two of them.",
                between(0, most_microseconds));
}

Keys<MachineNetwork> MachineNetwork::keys() {
  return Keys<MachineNetwork>("network", "What joins the nodes.")
      .required("cards", &MachineNetwork::cards, "Network cards of a node.", between(1, 64))
      .required("rate", &MachineNetwork::rate, "Gb/s of a card, in each direction.", between(0.1, 1e4))
      .key("efficiency", &MachineNetwork::efficiency, "What messages attain of the rate.", between(0.01, 1))
      .required("latency", &MachineNetwork::latency, "Microseconds of a message between two nodes.",
                between(0, most_microseconds));
}

Keys<MachineHost> MachineHost::keys() {
  return Keys<MachineHost>("host", "What the processors and disks of a node do.")
      .required("samples", &MachineHost::samples, "Images, stored as JPEG, that a node reads and decodes a second.",
                between(1, 1e8))
      .required("storage", &MachineHost::storage, "GB/s at which a rank writes a checkpoint.", between(0.001, 1e4));
}

Keys<Machine> Machine::keys() {
  return Keys<Machine>("machine", "A machine for `trainctl plan`.")
      .key("about", &Machine::about, "What it is, in a line.")
      .required("device", &Machine::device, "What one rank computes on.")
      .required("node", &Machine::node, "What joins the devices of a node.")
      .key("network", &Machine::network, "What joins the nodes; none: there is one node.")
      .required("host", &Machine::host, "What the processors and disks of a node do.");
}

double peak_of(const MachineDevice& device, DType dtype, bool tf32) {
  if (dtype == DType::bfloat16 || dtype == DType::float16) return device.bfloat16.value_or(device.float32);
  return tf32 ? device.tf32.value_or(device.float32) : device.float32;
}

}  // namespace trainctl
