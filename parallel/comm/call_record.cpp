// Numbers the calls of a communicator within each step.
#include "parallel/comm/call_record.h"

#include "core/base/format.h"

namespace trainctl {

void CallRecord::open(Attendance& attendance, const std::vector<int>& world_ranks) {
  if (world_ranks.empty()) return;
  attendance_ = &attendance;
  world_ranks_ = world_ranks;
  number_ = attendance.number_communicator(world_ranks);
}

FlightEntry CallRecord::entry_of(const Call& call) {
  FlightEntry entry{.activity = Activity::communicating, .text = std::exchange(next_text_, {})};
  const FlightRecord* const record = flight();
  if (record == nullptr) return entry;
  entry.step = record->step();
  calls_ = entry.step == step_ ? calls_ + 1 : 0;
  step_ = entry.step;
  entry.number = calls_;
  if (entry.text.empty()) entry.text = name_of(call.kind);
  if (call.kind == CallKind::send || call.kind == CallKind::receive) {
    entry.message = call.kind == CallKind::send ? FlightMessage::send : FlightMessage::receive;
    entry.peer = world_ranks_[static_cast<std::size_t>(call.peer)];
  }
  return entry;
}

FlightLine& CallRecord::line() {
  FlightRecord* const record = flight();
  if (!has_line_ && record != nullptr) {
    has_line_ = true;
    line_ = record->line(kind_, format("communicator {}", number_), flight_group(world_ranks_));
  }
  return line_;
}

}  // namespace trainctl
