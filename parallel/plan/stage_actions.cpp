// Schedules taken apart into stretches of ops and communications.
#include "parallel/plan/stage_actions.h"

#include "core/base/error.h"

namespace trainctl {
namespace {

// The stretches and communications of a segment; communications are numbered from 0 in it.
std::vector<StageAction> cut(const PlacedProgram& program, int number, const OpSeconds& seconds) {
  const std::vector<PlacedOp>& ops = program.segment(number).ops;
  std::vector<StageAction> parts;
  StageAction stretch;
  int communications = 0;
  const auto close = [&](int end) {
    stretch.end = end;
    if (stretch.seconds > 0) parts.push_back(stretch);
    stretch = {.first = end + 1};
  };
  for (int o = 0; o < static_cast<int>(ops.size()); ++o) {
    if (ops[static_cast<std::size_t>(o)].op.def->trait() == OpTrait::collective) {
      close(o);
      parts.push_back(
          {.kind = StageAction::Kind::communicate, .first = o, .end = o + 1, .communication = communications++});
    } else {
      stretch.seconds += seconds.of(number, o);
    }
  }
  close(static_cast<int>(ops.size()));
  return parts;
}

// The compute copies that the update does not write: they are made at the start of a step.
void add_stale_copies(const PlacedProgram& program, const OpSeconds& seconds, std::vector<StageAction>& actions) {
  for (int o = 0; o < static_cast<int>(program.copies.size()); ++o) {
    if (program.copies[static_cast<std::size_t>(o)].updated) continue;
    actions.push_back({.seconds = seconds.of(program.copies_segment, o),
                       .first = o,
                       .end = o + 1,
                       .item = {program.copies_segment, 0, 0}});
  }
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
  std::vector<std::vector<StageAction>> parts;
  for (int s = 0; s < static_cast<int>(program.segments.size()); ++s) parts.push_back(cut(program, s, seconds));
  std::vector<StageAction> actions;
  add_stale_copies(program, seconds, actions);
  int communications = 0;
  for (const ScheduleItem& item : program.program.schedule) {
    for (StageAction action : parts[static_cast<std::size_t>(item.segment)]) {
      action.item = item;
      if (action.kind == StageAction::Kind::communicate) action.communication = communications++;
      actions.push_back(action);
    }
  }
  require(communications == static_cast<int>(list.all.size()), "a compiled program communicates as before");
  return actions;
}

}  // namespace trainctl
