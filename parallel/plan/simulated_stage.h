// A stage of a simulated step: how far its rank has come in its actions, and what it has done with the time.
#pragma once

#include <array>
#include <vector>

#include "parallel/plan/costs.h"
#include "parallel/plan/simulator.h"
#include "parallel/strategies/communication_check/rank_lists.h"

namespace trainctl {

// What a stage's rank does in a step, one after the other: stretches of ops, communications and waits.
struct StageAction {
  enum class Kind { compute, communicate };
  Kind kind = Kind::compute;
  double seconds = 0;      // of a stretch of ops
  int first = 0, end = 0;  // its ops in the segment of the item; of a communication its own
  int communication = -1;  // its place in the rank's list; waits are in that list, too
  ScheduleItem item;
};

// The costs of a program's ops, each asked for once.
class OpSeconds {
 public:
  OpSeconds(const PlacedProgram& program, const Costs& costs);
  // 0 for what is no kernel.
  double of(int segment, int op) const {
    return seconds_[static_cast<std::size_t>(segment)][static_cast<std::size_t>(op)];
  }

 private:
  std::vector<std::vector<double>> seconds_;
};

// The actions of a program: first those that refresh the compute copies that its update does not write, then the ops in
// the order of the schedule. `list` holds the communications of the same program before it was compiled; ops between
// two of them are one action.
std::vector<StageAction> stage_actions(const PlacedProgram& program, const RankList& list, const OpSeconds& seconds);

// Which of a stage's communications run one after the other: those along one axis do; on processors the pipeline's
// backward channel has a lane of its own (parallel/mesh/axes.h).
inline constexpr int lane_count = mesh_axes + 1;

struct Lanes {
  std::vector<int> lane;                            // of each communication of the list; unspecified for waits
  std::vector<int> number;                          // of each but waits: how many precede it in its lane
  std::array<std::vector<int>, lane_count> places;  // in the list, by lane

  Lanes(const RankList& list, bool on_processors);
};

// How far the rank of a stage has come.
struct SimulatedStage {
  const StageRank& rank;
  OpSeconds op_seconds;
  RankList list;
  Lanes lanes;
  std::vector<StageAction> actions;
  std::vector<const Op*> placed;         // the ops of the communications of the list
  std::size_t next = 0;                  // the action that it is at
  bool computes = false;                 // else it waits, or has ended
  int reached = -1;                      // the last communication that it has come to, waits not counted
  std::array<int, lane_count> done{};    // communications that have ended, in each lane
  std::array<bool, lane_count> flies{};  // whether the next one of the lane is under way
  double settled = 0;                    // until when the parts below count
  double busy = 0;
  double began = 0;  // its present stretch of ops
  StepSeconds parts;
  double bytes_sent = 0;

  SimulatedStage(const StageRank& of, const Costs& costs);

  const Communication& communication(int number) const { return list.all[index(number)]; }
  bool is_done(int communication) const;
  // The communication that is next in a lane; -1: none is left.
  int head(int lane) const;
  // Whether it has come to the next communication of a lane, which has not begun.
  bool waits_in(int lane) const;
  // Counts the time since it was settled last to what it has done in it.
  void settle(double now);

 private:
  bool waits_for_flight() const;
};

}  // namespace trainctl
