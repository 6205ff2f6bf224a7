// The interface through which the simulator asks for the time of ops, communication and the host on some machine.
#pragma once

#include <cstdint>

#include "core/compile/placed_program.h"
#include "parallel/strategies/communication_check/communications.h"

namespace trainctl {

// One collective, or one message, between the ranks of a group.
struct Traffic {
  Communication::Kind kind = Communication::Kind::all_reduce;  // not `wait`; `send` means a message and its receive
  MeshAxis axis = MeshAxis::data;
  int ranks = 1;           // number of ranks in the group; 2 for a message
  int ranks_per_node = 1;  // the largest number of the group's ranks on one node
  // Number of groups on this node that run the same communication at the same time, including this one.
  int alike = 1;
  std::int64_t bytes = 0;  // bytes of the whole buffer that is gathered or scattered, as in Communication::count
  DType dtype = DType::float32;
  bool shared = false;      // whether it uses memory that all ranks of a host share, instead of copies
  std::int64_t copied = 0;  // bytes that each rank copies within its own memory before and after it

  bool within_node() const { return ranks <= ranks_per_node; }
};

// The time of a communication that uses its links alone, from the moment when the last rank of its group has reached
// it: an alpha-beta model. If other communications use the same links, the transfer takes longer and the latency stays
// the same.
struct TrafficSeconds {
  double latency = 0;
  double transfer = 0;
  double share = 1;  // fraction of its links' capacity that the transfer uses alone

  double alone() const { return latency + transfer; }
};

// The time of the host, which is added to the time of a step's ops.
struct HostSeconds {
  double step = 0;    // seconds of one step outside its ops: passing the batch, reading the results
  double sample = 0;  // seconds to prepare one sample of the rank's share, with all of the rank's loading threads
  // Whether batches are prepared while the step's ops run. Otherwise the time of loading is added to the step.
  bool overlaps_loading = true;
};

class Costs {
 public:
  virtual ~Costs() = default;

  // Returns the seconds of one run of a kernel op (OpTrait::kernel) of a placed program on one rank: op number `op` of
  // segment number `segment`.
  virtual double op_seconds(const PlacedProgram& program, int segment, int op) const = 0;
  virtual TrafficSeconds communication_seconds(const Traffic& traffic) const = 0;
  // Returns the host's time for a rank that runs a step of this program.
  virtual HostSeconds host_seconds(const PlacedProgram& program) const = 0;
  // Whether asynchronous communication runs on the cores that compute the ops (CPU), so that each slows the other down.
  // Otherwise they run in parallel (GPU with its own links).
  virtual bool communication_takes_cores() const = 0;
};

}  // namespace trainctl
