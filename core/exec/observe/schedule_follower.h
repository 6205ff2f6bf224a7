// Finds the item of the schedule for which an observed op runs.
#pragma once

#include <cstddef>

#include "core/base/error.h"
#include "core/program/program.h"

namespace trainctl {

class ScheduleFollower {
 public:
  // Called for every op of a step, in the order in which they run; the ops of an item run in order. Returns the item.
  const ScheduleItem& follow(const Program& program, int segment, int op, int slot) {
    const auto runs = [&](const ScheduleItem& item) {
      return item.segment == segment && item.slot == slot && op > last_op_;
    };
    while (item_ < program.schedule.size() && !runs(program.schedule[item_])) {
      ++item_;
      last_op_ = -1;
    }
    require(item_ < program.schedule.size(), "an op runs for no item of the schedule");
    last_op_ = op;
    return program.schedule[item_];
  }
  // The item of the last op.
  const ScheduleItem& item(const Program& program) const { return program.schedule[item_]; }

 private:
  std::size_t item_ = 0;
  int last_op_ = -1;
};

}  // namespace trainctl
