// What a stage's rank does in a step, one after the other: stretches of ops, communications and waits.
#pragma once

#include <vector>

#include "parallel/plan/costs.h"
#include "parallel/strategies/rendezvous/rank_lists.h"

namespace trainctl {

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

// The actions of a program in the order of its schedule, behind the refreshing of compute copies that its update leaves
// stale. `list`: of the same program before it was compiled, from which stretches of ops are told apart.
std::vector<StageAction> stage_actions(const PlacedProgram& program, const RankList& list, const OpSeconds& seconds);

}  // namespace trainctl
