// Adds the copies segment to a schedule.
#include "core/exec/copy_schedule.h"

#include <utility>

#include "core/exec/fresh_copies.h"

namespace trainctl {

bool begins_with_prepare(const PlacedProgram& placed) {
  const std::vector<ScheduleItem>& schedule = placed.program.schedule;
  return !schedule.empty() && placed.segment(schedule.front().segment).phase == Phase::prepare;
}

std::vector<ScheduleItem> schedule_with_copies(const PlacedProgram& placed, bool updates_copies) {
  const ScheduleItem copies{placed.copies_segment, 0, 0};
  if (placed.copies_segment < 0) return placed.program.schedule;
  std::vector<ScheduleItem> items;
  const bool trains = placed.program.step.learning_rate != no_tensor;
  if (trains && !updates_copies && !begins_with_prepare(placed)) items.push_back(copies);
  // The kernels of optimizers may write the copies of what they update, but nothing writes those of teachers.
  const bool rewrites = !updates_copies || !moved_parameters(placed).empty();
  bool updated = false;  // whether a player has changed parameters since the copies were written
  for (ScheduleItem item : placed.program.schedule) {
    const Phase phase = placed.segment(item.segment).phase;
    if (updated && phase == Phase::forward && rewrites) {
      items.push_back(copies);
      std::swap(items.back().waits, item.waits);
    }
    if (phase == Phase::update) updated = true;
    if (phase == Phase::forward || phase == Phase::prepare) updated = false;
    items.push_back(item);
    if (phase == Phase::prepare) items.push_back(copies);
  }
  return items;
}

}  // namespace trainctl
