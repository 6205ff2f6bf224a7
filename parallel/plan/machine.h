// A machine for the plan, as a file of configs/machines/ describes it: devices, nodes, links between them.
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

// What one rank computes on.
struct MachineDevice {
  MachineKind kind = MachineKind::gpu;
  Size memory;                           // bytes of a rank
  double memory_bandwidth = 0;           // GB/s, reads and writes together
  double float32 = 0;                    // dense multiply-adds, TFLOP/s, each counting two
  std::optional<double> tf32, bfloat16;  // likewise on units of their own; none: as float32
  double compute_efficiency = 1;         // what products and convolutions attain of these peaks
  double memory_efficiency = 1;          // what other ops attain of the bandwidth
  double kernel_overhead = 0;            // microseconds from the end of one kernel to the start of the next

  static Keys<MachineDevice> keys();
};

// What joins the devices of a node.
struct MachineNode {
  int devices = 1;
  double link = 0;          // GB/s that a device sends while it receives as many
  double link_latency = 0;  // microseconds

  static Keys<MachineNode> keys();
};

// What joins the nodes.
struct MachineNetwork {
  int cards = 1;          // of a node
  double rate = 0;        // Gb/s of a card, in each direction
  double efficiency = 1;  // what messages attain of the rate
  double latency = 0;     // microseconds

  static Keys<MachineNetwork> keys();
};

// What the processors and disks of a node add.
struct MachineHost {
  double samples = 0;  // a second that a node's processors read and decode, of images stored as JPEG
  double storage = 0;  // GB/s that one writer of a checkpoint attains

  static Keys<MachineHost> keys();
};

struct Machine {
  std::string about;  // in a line
  MachineDevice device;
  MachineNode node;
  std::optional<MachineNetwork> network;  // none: there is one node
  MachineHost host;

  static Keys<Machine> keys();

  DeviceTraits traits() const {
    const bool host_memory = device.kind == MachineKind::cpu;
    return {host_memory, !host_memory};
  }
};

// TFLOP/s of products whose inputs have this dtype.
double peak_of(const MachineDevice& device, DType dtype, bool tf32);

}  // namespace trainctl
