// Costs: what ops, communication and the host take in time on some machine. What the simulated interpreter asks.
#pragma once

#include <cstdint>

#include "core/compile/placed_program.h"
#include "parallel/strategies/communication_check/communications.h"

namespace trainctl {

// One collective, or one message, between the ranks of a group.
struct Traffic {
  Communication::Kind kind = Communication::Kind::all_reduce;  // never wait; send stands for a message and its receive
  MeshAxis axis = MeshAxis::data;
  int ranks = 1;           // of the group; 2 for a message
  int ranks_per_node = 1;  // the most of the group that lie on one node; equal to `ranks` where all do
  int alike = 1;           // groups that have ranks on this node and do the same at the same time, this one included
  std::int64_t bytes = 0;  // of the whole buffer, as Communication::count counts: all that is gathered or scattered
  DType dtype = DType::float32;
  bool shared = false;      // whether it works in memory that all ranks of a host see, else the data travels in copies
  std::int64_t copied = 0;  // bytes that each rank copies within its own memory, to where it works and from there

  bool within_node() const { return ranks <= ranks_per_node; }
};

// The time that a communication takes when nothing else is on its links, from the moment the last rank of its group has
// come to it: an alpha-beta model. While others are on the same links the transfer takes longer, the latency does not.
struct TrafficSeconds {
  double latency = 0;
  double transfer = 0;
  double share = 1;  // of its links' capacity, which the transfer takes up when alone

  double alone() const { return latency + transfer; }
};

// What the host adds to the ops of a step.
struct HostSeconds {
  double step = 0;           // of one step, outside of ops: handing over the batch, reading the results
  double sample = 0;         // of preparing one sample of the rank's share, all of the rank's loading threads together
  bool loads_beside = true;  // whether batches are prepared beside the step's ops; else their time adds to the step
};

class Costs {
 public:
  virtual ~Costs() = default;

  // Seconds of one run of a kernel op (OpTrait::kernel) of a placed program on one rank: the op of number `op` in the
  // segment of number `segment`.
  virtual double op_seconds(const PlacedProgram& program, int segment, int op) const = 0;
  virtual TrafficSeconds communication_seconds(const Traffic& traffic) const = 0;
  // Of a rank that runs a step of this program.
  virtual HostSeconds host_seconds(const PlacedProgram& program) const = 0;
  // Whether asynchronous communication computes on the cores that ops run on (a CPU), so that either slows the other;
  // else it runs beside them (a GPU with links of its own).
  virtual bool communication_takes_cores() const = 0;
};

}  // namespace trainctl
