// The simulated interpreter: one step of all ranks, played as events on streams and links, with a machine's costs.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "parallel/plan/traffic.h"

namespace trainctl {

// The rank that stands for all of a stage: those along the data and tensor axes do the same at the same time.
struct StageRank {
  const Program* program = nullptr;       // with its segments, from which its communications follow
  const PlacedProgram* placed = nullptr;  // the same, compiled
  MeshRank rank;
};

// The parts of a rank's step, in seconds, which add up to it.
struct StepSeconds {
  double compute = 0;
  double communication = 0;  // that nothing hides, and what computation takes longer beside communication
  double bubble = 0;         // waiting for ranks of other stages
  double data = 0;           // waiting for batches
  double host = 0;           // handing over the batch, reading the results

  double total() const { return compute + communication + bubble + data + host; }
};

// What one stream of a rank does for a time.
struct SimulatedEvent {
  int stage = 0;
  std::optional<MeshAxis> axis;  // of communication; none: computation
  double start = 0, end = 0;     // seconds since the step's start
  const Op* op = nullptr;        // of the placed program; of a communication the program's
  ScheduleItem item;             // in which it runs
};

struct SimulatedStep {
  double seconds = 0;
  std::vector<StepSeconds> stages;       // of the rank that stands for each stage
  std::vector<double> bytes_sent;        // by that rank, by stage
  std::int64_t events = 0;               // that the simulation took
  std::vector<SimulatedEvent> timeline;  // empty unless it was asked for

  // The mean over the stages, whose ranks are equally many.
  StepSeconds parts() const;
};

// Plays one step. `stages`: one rank of each stage of the mesh, in their order. A compute stream runs ops one after the
// other; communications along one axis follow each other in the order of the program, begin when all ranks that take
// part have come to them, and hold the compute stream up at once, or where they are asynchronous at their wait. A
// transfer within a node occupies the links of the ranks that take part, one between nodes the network of their nodes,
// which all ranks of a node share; transfers that together want more than a link has share it. Where communication
// takes cores, an op and a communication beside it share them. The time of it grows with the stages and their
// micro-batches, not with the ranks. Throws Error{internal} where ranks wait for each other for ever.
SimulatedStep simulate_step(const std::vector<StageRank>& stages, const Nodes& nodes, const Costs& costs,
                            bool timeline = false);

}  // namespace trainctl
