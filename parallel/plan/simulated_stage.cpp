// Lists the actions of a simulated stage and tracks its state.
#include "parallel/plan/simulated_stage.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/exec/copy_schedule.h"
#include "core/graph/ops/collectives.h"

namespace trainctl {
namespace {

// Divides a segment into stretches of ops and communications, which are numbered from 0 in the segment.
std::vector<StageAction> cut(const PlacedProgram& program, int number, const OpSeconds& seconds) {
  const std::vector<PlacedOp>& ops = program.segment(number).ops;
  std::vector<StageAction> actions;
  StageAction stretch;
  int communications = 0;
  const auto close = [&](int end) {
    stretch.end = end;
    if (stretch.seconds > 0) actions.push_back(stretch);
    stretch = {.first = end + 1};
  };
  for (int o = 0; o < static_cast<int>(ops.size()); ++o) {
    if (ops[static_cast<std::size_t>(o)].op.def->trait() == OpTrait::collective) {
      close(o);
      actions.push_back(
          {.kind = StageAction::Kind::communicate, .first = o, .end = o + 1, .communication = communications++});
    } else {
      stretch.seconds += seconds.of(number, o);
    }
  }
  close(static_cast<int>(ops.size()));
  return actions;
}

// Whether the updates of the backend for which the program was compiled write compute copies.
bool update_writes_copies(const PlacedProgram& program) {
  return std::any_of(program.copies.begin(), program.copies.end(),
                     [](const ComputeCopy& copy) { return copy.updated; });
}

// Adds the actions at the start of a step that refresh the compute copies which the update does not write.
void add_stale_copies(const PlacedProgram& program, const OpSeconds& seconds, std::vector<StageAction>& actions) {
  for (int o = 0; o < static_cast<int>(program.copies.size()); ++o) {
    if (program.copies[static_cast<std::size_t>(o)].updated) continue;
    actions.push_back({.seconds = seconds.of(program.copies_segment, o),
                       .first = o,
                       .end = o + 1,
                       .item = {program.copies_segment, 0, 0}});
  }
}

constexpr int backward_lane = mesh_axes;

int lane_of(const Communication& communication, bool on_host) {
  const auto* op = communication.op->get_if<Collective>();
  const bool backward =
      communication.axis == MeshAxis::pipeline && op != nullptr && op->on_channel() == Channel::backward;
  return backward && on_host ? backward_lane : static_cast<int>(communication.axis);
}

}  // namespace

OpSeconds::OpSeconds(const PlacedProgram& program, const Costs& costs) {
  for (int s = 0; s < static_cast<int>(program.segments.size()); ++s) {
    const std::vector<PlacedOp>& ops = program.segment(s).ops;
    std::vector<double>& of_segment = seconds_.emplace_back();
    for (int o = 0; o < static_cast<int>(ops.size()); ++o) {
      const bool kernel = ops[static_cast<std::size_t>(o)].op.def->trait() == OpTrait::kernel;
      of_segment.push_back(kernel ? costs.op_seconds(program, s, o) : 0);
    }
  }
}

std::vector<StageAction> stage_actions(const PlacedProgram& program, const RankList& list, const OpSeconds& seconds) {
  std::vector<std::vector<StageAction>> of_segments;
  for (int s = 0; s < static_cast<int>(program.segments.size()); ++s) of_segments.push_back(cut(program, s, seconds));
  std::vector<StageAction> actions;
  const bool updates_copies = update_writes_copies(program);
  if (updates_copies && !begins_with_prepare(program)) add_stale_copies(program, seconds, actions);
  int communications = 0;
  for (const ScheduleItem& item : schedule_with_copies(program, updates_copies)) {
    for (StageAction action : of_segments[static_cast<std::size_t>(item.segment)]) {
      action.item = item;
      if (action.kind == StageAction::Kind::communicate) action.communication = communications++;
      actions.push_back(action);
    }
  }
  require(communications == static_cast<int>(list.all.size()),
          "a compiled program and its program differ in their communications");
  return actions;
}

Lanes::Lanes(const RankList& list, bool on_host) {
  for (std::size_t i = 0; i < list.all.size(); ++i) {
    std::vector<int>& of_lane = indices[index(lane.emplace_back(lane_of(list.all[i], on_host)))];
    number.push_back(static_cast<int>(of_lane.size()));
    if (list.all[i].kind != Communication::Kind::wait) of_lane.push_back(static_cast<int>(i));
  }
}

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
  const std::vector<int>& all = lanes.indices[index(lane)];
  const auto next_one = index(done[index(lane)]);
  return next_one < all.size() ? all[next_one] : -1;
}

bool SimulatedStage::waits_in(int lane) const {
  const int first = head(lane);
  return first >= 0 && first <= reached && !is_running[index(lane)];
}

void SimulatedStage::settle(double now) {
  double& phase = computes ? busy : waits_for_running() ? phases.communication : phases.bubble;
  phase += now - settled;
  settled = now;
}

// Returns whether the communication that the current action waits for is running: the action itself, or the
// communication that a wait names.
bool SimulatedStage::waits_for_running() const {
  if (next >= actions.size() || actions[next].kind != StageAction::Kind::communicate) return false;
  const int number = actions[next].communication;
  const Communication& current = communication(number);
  const int awaited = current.kind == Communication::Kind::wait ? current.awaited : number;
  return is_running[index(lanes.lane[index(awaited)])];
}

}  // namespace trainctl
