// The calls of one communicator in the rank's flight record.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "core/base/flight_record.h"
#include "parallel/comm/call.h"

namespace trainctl {

class CallRecord {
 public:
  // Lets the calls appear in the record of `attendance`, which must outlive the object. Called on all ranks of the
  // communicator before their first call. Without it, or with an unknown list, nothing is recorded.
  void open(Attendance& attendance, const std::vector<int>& world_ranks);
  const std::vector<int>& world_ranks() const { return world_ranks_; }

  // See Communicator.
  void describe_next(std::string_view text) { next_text_ = text; }
  void set_background() { kind_ = FlightThread::saving; }
  bool is_background() const { return kind_ == FlightThread::saving; }

  // Describes a call that is made now. Used by the thread that makes the calls.
  FlightEntry entry_of(const Call& call);
  // The line for the entries; the first use adds it to the record. Used by the thread that runs the calls.
  FlightLine& line();

 private:
  FlightRecord* flight() const { return attendance_ == nullptr ? nullptr : attendance_->flight(); }

  Attendance* attendance_ = nullptr;  // null: the calls are not recorded
  std::vector<int> world_ranks_;
  int number_ = 0;  // number of this communicator among those of the same ranks
  std::string_view next_text_;
  std::int64_t step_ = -1;  // step of the last call
  std::int32_t calls_ = 0;  // number of calls in this step
  FlightThread kind_ = FlightThread::communication;
  bool has_line_ = false;
  FlightLine line_;
};

}  // namespace trainctl
