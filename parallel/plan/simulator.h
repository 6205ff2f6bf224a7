// Simulates one step of all ranks as events on streams and links, with the costs of a machine.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "parallel/plan/traffic.h"

namespace trainctl {

// The rank that represents all ranks of a stage, since the ranks along the data and tensor axes do the same at the same
// time.
struct StageRank {
  const Program* program = nullptr;       // uncompiled program; its segments contain the communications
  const PlacedProgram* placed = nullptr;  // the compiled program
  MeshRank rank;
};

// The seconds of a rank's step, divided into activities.
struct StepSeconds {
  double compute = 0;
  double communication = 0;  // exposed communication, and the slowdown of computation that overlaps with it
  double bubble = 0;         // waiting for ranks of other stages
  double data = 0;           // waiting for batches
  double host = 0;           // passing the batch, reading the results

  double total() const { return compute + communication + bubble + data + host; }
};

// An event on one stream of a rank.
struct SimulatedEvent {
  int stage = 0;
  std::optional<MeshAxis> axis;  // axis of a communication; empty: computation
  double start = 0, end = 0;     // seconds since the step's start
  const Op* op = nullptr;        // op of the placed program; for a communication, of the program
  ScheduleItem item;             // item of the schedule in which the op runs
};

struct SimulatedStep {
  double seconds = 0;
  std::vector<StepSeconds> stages;       // times of the rank that represents each stage
  std::vector<double> bytes_sent;        // bytes that this rank sends, for each stage
  std::int64_t events = 0;               // number of events that were simulated
  std::vector<SimulatedEvent> timeline;  // empty unless requested

  // Returns the mean over the stages, which all have the same number of ranks.
  StepSeconds phases() const;
};

// Simulates one step. `stages`: one rank of each stage of the mesh, in order. A compute stream runs ops one after the
// other. Communications along one axis run one after the other in the order of the program; each begins when all its
// ranks have reached it. The compute stream waits for a communication immediately, or, if it is asynchronous, at its
// wait. A transfer within a node uses the links of its ranks. A transfer between nodes uses the networks of the nodes,
// which all ranks of a node share. A collective uses both directions of a link, a message only one. Transfers that
// together exceed a link's capacity share it. If communication takes cores, an op and a communication that overlap
// share the cores. The simulation takes time proportional to the stages and their micro-batches, not to the ranks.
// Throws Error{internal} if ranks wait for each other forever.
SimulatedStep simulate_step(const std::vector<StageRank>& stages, const Nodes& nodes, const Costs& costs,
                            bool timeline = false);

}  // namespace trainctl
