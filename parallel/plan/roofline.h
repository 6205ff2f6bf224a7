// Costs computed from the description of a machine: a roofline model for ops and an alpha-beta model for communication.
#pragma once

#include "parallel/plan/costs.h"
#include "parallel/plan/machine.h"

namespace trainctl {

// How a run uses the machine.
struct RooflineUse {
  bool tf32 = false;       // train.tf32
  bool decodes = false;    // whether samples are images to be decoded; otherwise loading takes no time
  int ranks_per_node = 1;  // ranks that share the node's processors and network cards
};

class RooflineCosts final : public Costs {
 public:
  RooflineCosts(const Machine& machine, const RooflineUse& use) : machine_(machine), use_(use) {}

  // An op takes as long as its FLOPs at the attained peak rate or its bytes at the attained bandwidth, whichever is
  // longer (Williams et al., 2009), plus the overhead of a kernel.
  double op_seconds(const PlacedProgram& program, int segment, int op) const override;
  // Collectives within a node use a ring of n - 1 steps, twice that number for an all-reduce, each of an n-th of the
  // bytes (Patarasuk and Yuan, 2009). Across nodes they use the fastest of three algorithms: a ring through all ranks;
  // separate rings inside the nodes and across them; for an all-reduce, trees over the nodes (Sanders et al., 2009).
  // NCCL makes the same choice. The ranks of a group on one node use the node's cards in parallel and share them with
  // the other groups that run the same communication (Traffic::alike).
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
