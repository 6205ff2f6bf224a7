// The keys of a machine's file. The ranges include all existing machines and a margin, but no value in a wrong unit.
#include "parallel/plan/machine.h"

namespace trainctl {
namespace {

constexpr double max_microseconds = 1e4;

void check_memory(const MachineDevice& device, const Node& node, Reader& reader) {
  constexpr std::int64_t min_bytes = 100'000'000, max_bytes = 100'000'000'000'000;
  if (device.memory.bytes >= min_bytes && device.memory.bytes <= max_bytes) return;
  reader.error(node.find("memory")->location,
               "memory must be from 100 MB to 100 TB, with its unit, not '" + to_string(device.memory) + "'");
}

}  // namespace

Keys<MachineDevice> MachineDevice::keys() {
  return Keys<MachineDevice>("device", "The device on which one rank computes.")
      .key("kind", &MachineDevice::kind,
           "gpu: communication and computation run in parallel, and batches are kept in its memory; cpu: both share "
           "its cores.")
      .required("memory", &MachineDevice::memory, "Memory that a rank may use: `80 GB`.")
      .required("memory_bandwidth", &MachineDevice::memory_bandwidth, "Bandwidth of that memory, in GB/s.",
                between(1, 1e5))
      .required("float32", &MachineDevice::float32, "Peak rate of float32 multiply-adds, in TFLOP/s.",
                between(0.001, 1e4))
      .key("tf32", &MachineDevice::tf32,
           "Peak rate of TF32 products without sparsity, in TFLOP/s; default: that of float32.", between(0.001, 1e5))
      .key("bfloat16", &MachineDevice::bfloat16,
           "Peak rate of bfloat16 and float16 products without sparsity, in TFLOP/s; default: that of float32.",
           between(0.001, 1e5))
      .key(
          "compute_efficiency", &MachineDevice::compute_efficiency,
          "Fraction of the peak rates that products and convolutions attain; more than 1 if Winograd's algorithm saves "
          "multiplications.",
          between(0.01, 2))
      .key("memory_efficiency", &MachineDevice::memory_efficiency,
           "Fraction of memory_bandwidth that other ops attain.", between(0.01, 1))
      .key("kernel_overhead", &MachineDevice::kernel_overhead, "Microseconds between two kernels.",
           between(0, max_microseconds))
      .check(check_memory);
}

Keys<MachineNode> MachineNode::keys() {
  return Keys<MachineNode>("node", "The devices of a node and the links between them.")
      .required("devices", &MachineNode::devices, "Number of devices of a node, each for one rank.", between(1, 1024))
      .required("link", &MachineNode::link,
                "GB/s that a device sends to others of its node while it receives at the same rate.",
                between(0.01, 1e4))
      .required("link_latency", &MachineNode::link_latency,
                "Latency of a message between two devices of a node, in microseconds.", between(0, max_microseconds));
}

Keys<MachineNetwork> MachineNetwork::keys() {
  return Keys<MachineNetwork>("network", "The network between the nodes.")
      .required("cards", &MachineNetwork::cards, "Number of network cards of a node.", between(1, 64))
      .required("rate", &MachineNetwork::rate, "Rate of a card, in Gb/s in each direction.", between(0.1, 1e4))
      .key("efficiency", &MachineNetwork::efficiency, "Fraction of the rate that messages attain.", between(0.01, 1))
      .required("latency", &MachineNetwork::latency, "Latency of a message between two nodes, in microseconds.",
                between(0, max_microseconds));
}

Keys<MachineHost> MachineHost::keys() {
  return Keys<MachineHost>("host", "The processors and disks of a node.")
      .required("samples", &MachineHost::samples, "JPEG images per second that a node reads and decodes.",
                between(1, 1e8))
      .required("storage", &MachineHost::storage, "GB/s at which a rank writes a checkpoint.", between(0.001, 1e4));
}

Keys<Machine> Machine::keys() {
  return Keys<Machine>("machine", "A machine for `trainctl plan`.")
      .key("about", &Machine::about, "A description in one line.")
      .required("device", &Machine::device, "The device on which one rank computes.")
      .required("node", &Machine::node, "The devices of a node and the links between them.")
      .key("network", &Machine::network, "The network between the nodes; absent: there is one node.")
      .required("host", &Machine::host, "The processors and disks of a node.");
}

double peak_of(const MachineDevice& device, DType dtype, bool tf32) {
  if (dtype == DType::bfloat16 || dtype == DType::float16) return device.bfloat16.value_or(device.float32);
  return tf32 ? device.tf32.value_or(device.float32) : device.float32;
}

}  // namespace trainctl
