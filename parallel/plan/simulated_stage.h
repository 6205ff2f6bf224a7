// A stage of a simulated step: how far its rank has come in its actions, and what it has done with the time.
#pragma once

#include <array>
#include <vector>

#include "parallel/plan/lanes.h"
#include "parallel/plan/simulator.h"
#include "parallel/plan/stage_actions.h"

namespace trainctl {

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
