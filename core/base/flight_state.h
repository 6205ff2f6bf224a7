// Reads the flight record of a rank, also while the rank writes it, and says in words what the rank does.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/flight_record.h"

namespace trainctl {

// What one thread did, or does. The times are nanoseconds of the monotonic clock of the rank's host.
struct FlightEvent {
  Activity activity = Activity::starting;
  std::int64_t begin = 0;
  std::int64_t end = 0;     // 0: still under way when the record was read
  std::int64_t step = -1;   // -1: none
  std::int32_t number = 0;  // position in the step: of an op, or of a call of a communicator
  std::string text;
  FlightMessage message = FlightMessage::none;
  std::int32_t peer = -1;  // the world rank of a message's other end

  bool under_way() const { return end == 0; }
  bool operator==(const FlightEvent&) const = default;
};

struct FlightHistory {
  FlightThread thread = FlightThread::training;
  std::string name;
  FlightGroup group;
  std::uint64_t entered = 0;  // number of events that were entered since the start
  // The last events, oldest first; only the last one can be under way. Empty also if the rank wrote events faster than
  // they could be read.
  std::vector<FlightEvent> events;
  bool has_messages = false;  // whether the rank has entered messages, perhaps before these events
};

struct FlightState {
  int rank = 0;
  int ranks = 1;
  int process = 0;  // process id on its host
  std::string host;
  std::int64_t wall_offset = 0;  // nanoseconds to add to an event's time for the time since 1970
  std::vector<FlightHistory> lines;
  bool lost_lines = false;  // whether there are communicators whose events are missing, since the file was full
};

// The events of each line that are read: the last one, or all that the record still has.
enum class FlightEvents { last, all };

// Reads a record. With FlightEvents::last only the last event of each line is read, which is faster. Throws Error{data}
// if the file is missing, is no flight record or is cut off.
FlightState read_flight_record(const std::string& path, FlightEvents events = FlightEvents::all);

// Returns the event that says best what the rank does, or last did: what the training thread does or, if it waits, the
// read of a sample, the collective, the message or the save that it waits for. Empty if nothing was written.
std::optional<FlightEvent> activity_of(const FlightState& state);

// The time of a rank's last change of any line, in nanoseconds of its monotonic clock; 0 if nothing was written.
std::int64_t last_change(const FlightState& state);

// "reading data", for tables.
std::string_view name_of(Activity activity);
std::string_view name_of(FlightThread thread);

// Describes an event: its activity and its text, for example "reading data: img_0412.jpg".
std::string describe(const FlightEvent& event);

// The monotonic clock of this host in nanoseconds, with which the times of the ranks on this host compare.
std::int64_t flight_clock();

}  // namespace trainctl
