// Costs of a machine that is described, not measured: a roofline for ops, an alpha-beta model for communication.
#pragma once

#include "parallel/plan/costs.h"
#include "parallel/plan/machine.h"

namespace trainctl {

// How a run uses the machine.
struct RooflineUse {
  bool tf32 = false;       // as train.tf32
  bool decodes = false;    // whether samples are images to be decoded; else they are there
  int ranks_per_node = 1;  // which share the node's processors and network cards
};

class RooflineCosts final : public Costs {
 public:
  RooflineCosts(const Machine& machine, const RooflineUse& use) : machine_(machine), use_(use) {}

  // An op takes as long as its FLOPs at the attained peak, or its bytes at the attained bandwidth, whichever is longer
  // (Williams et al., 2009), and the overhead of a kernel.
  double op_seconds(const PlacedProgram& program, int segment, int op) const override;
  // Of collectives within a node: a ring, in n - 1 steps, or twice as many for a sum, each of an n-th of the bytes
  // (Patarasuk and Yuan, 2009). Across nodes the faster of a ring through all ranks; of stages, inside the nodes and
  // across them; and for a sum of trees over the nodes (Sanders et al., 2009), as NCCL chooses. Ranks of a group on one
  // node use the node's cards side by side, with all groups that are alike.
  TrafficSeconds communication_seconds(const Traffic& traffic) const override;
  HostSeconds host_seconds(const PlacedProgram&) const override;
  bool communication_takes_cores() const override { return machine_.device.kind == MachineKind::cpu; }

 private:
  TrafficSeconds within_node(const Traffic& traffic) const;
  TrafficSeconds across_nodes(const Traffic& traffic) const;

  const Machine machine_;
  const RooflineUse use_;
};

}  // namespace trainctl
