// The description of a machine for `trainctl plan`: devices, nodes and the links between them (configs/machines/).
#pragma once

#include <cstdint>
#include <string>

#include "core/compile/memory_plan.h"
#include "core/spec/values.h"
#include "core/tensor/dtype.h"

namespace trainctl {

enum class MachineKind { gpu, cpu };

template <>
struct EnumNames<MachineKind> {
  static constexpr EnumName<MachineKind> names[] = {{MachineKind::gpu, "gpu"}, {MachineKind::cpu, "cpu"}};
};

// The device on which one rank computes.
struct MachineDevice {
  MachineKind kind = MachineKind::gpu;
  Size memory;                           // bytes that a rank may use
  double memory_bandwidth = 0;           // GB/s, reads and writes together
  double float32 = 0;                    // TFLOP/s of dense multiply-adds, each counted as two operations
  std::optional<double> tf32, bfloat16;  // TFLOP/s on tensor cores; empty: the rate of float32
  double compute_efficiency = 1;         // fraction of these peaks that products and convolutions attain
  double memory_efficiency = 1;          // fraction of the bandwidth that other ops attain
  double kernel_overhead = 0;            // microseconds from the end of one kernel to the start of the next

  static Keys<MachineDevice> keys();
};

// The devices of a node and the links between them.
struct MachineNode {
  int devices = 1;
  double link = 0;          // GB/s that a device sends while it receives at the same rate
  double link_latency = 0;  // microseconds

  static Keys<MachineNode> keys();
};

// The network between the nodes.
struct MachineNetwork {
  int cards = 1;          // number of network cards of a node
  double rate = 0;        // Gb/s of a card, in each direction
  double efficiency = 1;  // fraction of the rate that messages attain
  double latency = 0;     // microseconds

  static Keys<MachineNetwork> keys();
};

// The processors and disks of a node.
struct MachineHost {
  double samples = 0;  // JPEG images per second that a node reads and decodes
  double storage = 0;  // GB/s that one writer of a checkpoint attains

  static Keys<MachineHost> keys();
};

struct Machine {
  std::string about;  // a description in one line
  MachineDevice device;
  MachineNode node;
  std::optional<MachineNetwork> network;  // empty: there is one node
  MachineHost host;

  static Keys<Machine> keys();

  DeviceTraits traits() const {
    const bool host_memory = device.kind == MachineKind::cpu;
    return {host_memory, !host_memory};
  }
};

// Returns the peak TFLOP/s of products whose inputs have this dtype.
double peak_of(const MachineDevice& device, DType dtype, bool tf32);

}  // namespace trainctl
