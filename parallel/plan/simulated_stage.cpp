// The state of a simulated stage.
#include "parallel/plan/simulated_stage.h"

namespace trainctl {

SimulatedStage::SimulatedStage(const StageRank& of, const Costs& costs)
    : rank(of), op_seconds(*of.placed, costs), list(*of.program), lanes(list, costs.communication_takes_cores()) {
  actions = stage_actions(*of.placed, list, op_seconds);
  for (const StageAction& action : actions) {
    if (action.kind != StageAction::Kind::communicate) continue;
    placed.push_back(&of.placed->op(action.item.segment, action.first).op);
  }
}

bool SimulatedStage::is_done(int communication) const {
  return lanes.number[index(communication)] < done[index(lanes.lane[index(communication)])];
}

int SimulatedStage::head(int lane) const {
  const std::vector<int>& all = lanes.places[index(lane)];
  const auto next_one = index(done[index(lane)]);
  return next_one < all.size() ? all[next_one] : -1;
}

bool SimulatedStage::waits_in(int lane) const {
  const int first = head(lane);
  return first >= 0 && first <= reached && !flies[index(lane)];
}

void SimulatedStage::settle(double now) {
  double& part = computes ? busy : waits_for_flight() ? parts.communication : parts.bubble;
  part += now - settled;
  settled = now;
}

// Whether what its present action waits for is under way: the communication itself, or the one that a wait is for.
bool SimulatedStage::waits_for_flight() const {
  if (next >= actions.size() || actions[next].kind != StageAction::Kind::communicate) return false;
  const int place = actions[next].communication;
  const Communication& at = communication(place);
  const int awaited = at.kind == Communication::Kind::wait ? at.awaited : place;
  return flies[index(lanes.lane[index(awaited)])];
}

}  // namespace trainctl
