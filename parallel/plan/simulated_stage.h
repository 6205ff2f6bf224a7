// The state of a stage in a simulated step: the actions that its rank has done and how it has spent the time.
#pragma once

#include <array>
#include <vector>

#include "parallel/plan/costs.h"
#include "parallel/plan/simulator.h"
#include "parallel/strategies/communication_check/rank_lists.h"

namespace trainctl {

// An action of a stage's rank in a step: a stretch of ops, a communication or a wait. Actions run in order.
struct StageAction {
  enum class Kind { compute, communicate };
  Kind kind = Kind::compute;
  double seconds = 0;      // seconds of a stretch of ops
  int first = 0, end = 0;  // range of the ops in the item's segment; a communication has one op
  int communication = -1;  // index of the communication in the rank's list, which includes waits
  ScheduleItem item;
};

// The seconds of a program's ops, which are computed once for each op.
class OpSeconds {
 public:
  OpSeconds(const PlacedProgram& program, const Costs& costs);
  // Returns 0 if the op is not a kernel.
  double of(int segment, int op) const {
    return seconds_[static_cast<std::size_t>(segment)][static_cast<std::size_t>(op)];
  }

 private:
  std::vector<std::vector<double>> seconds_;
};

// Returns the actions of a program: the ops in the order of the schedule, and those that write compute copies where the
// engine runs them (schedule_with_copies()). Copies that are stale at the start of a step, although its update writes
// others, come first. `list` holds the communications of the same program before it was compiled; the ops between two
// of them are one action.
std::vector<StageAction> stage_actions(const PlacedProgram& program, const RankList& list, const OpSeconds& seconds);

// A lane is a sequence of communications that run one after the other: the communications along one axis. On CPUs the
// pipeline's backward channel has its own lane (parallel/mesh/axes.h).
inline constexpr int lane_count = mesh_axes + 1;

struct Lanes {
  std::vector<int> lane;                             // lane of each communication of the list; unspecified for waits
  std::vector<int> number;                           // for each communication, the number of earlier ones in its lane
  std::array<std::vector<int>, lane_count> indices;  // indices in the list, by lane

  Lanes(const RankList& list, bool on_host);
};

// The state of the rank of a stage.
struct SimulatedStage {
  const StageRank& rank;
  OpSeconds op_seconds;
  RankList list;
  Lanes lanes;
  std::vector<StageAction> actions;
  std::vector<const Op*> placed;              // the ops of the list's communications
  std::size_t next = 0;                       // index of the current action
  bool computes = false;                      // whether it computes; otherwise it waits or has ended
  int reached = -1;                           // index of the last communication that it has reached; waits do not count
  std::array<int, lane_count> done{};         // number of communications that have ended in each lane
  std::array<bool, lane_count> is_running{};  // whether the next communication of the lane is running
  double settled = 0;                         // time up to which `busy` and `phases` are counted
  double busy = 0;                            // seconds in which it has computed
  double began = 0;                           // when its current stretch of ops began
  StepSeconds phases;
  double bytes_sent = 0;

  SimulatedStage(const StageRank& of, const Costs& costs);

  const Communication& communication(int number) const { return list.all[index(number)]; }
  bool is_done(int communication) const;
  // Returns the next communication of a lane, or -1 if none is left.
  int head(int lane) const;
  // Whether it has reached the next communication of a lane, which has not begun.
  bool waits_in(int lane) const;
  // Adds the time since the last call to the phase of the step in which the rank has spent it.
  void settle(double now);

 private:
  bool waits_for_running() const;
};

}  // namespace trainctl
