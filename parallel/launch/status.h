// How a run ended, told by the ranks to their supervisor through a file.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/base/failure.h"

namespace trainctl {

// An exit code of 0 is success.
using RankStatus = Failure;

enum class StatusWritten {
  yes,                // the supervisor will print the message
  another_was_first,  // this rank's message is an echo: nobody prints it
  unreachable,        // the supervisor is on another host, or there is none: the rank prints its message
};

// Writes the status, whole or not at all. The first one counts: rank 0 writes one at the end of every run; before that,
// any rank that takes the others down. An empty path is unreachable. To a supervisor on another host goes the exit code
// (see take_notes()).
StatusWritten write_status(const std::string& path, const RankStatus& status);

// The status that a rank has written; nothing where there is none.
std::optional<RankStatus> read_status(const std::string& path);

// Rank 0 marks that all ranks handle requests to stop (MPI_Init comes after that and waits for all): from now on the
// supervisor relays requests. `processes`: those that the ranks are, on their hosts.
void mark_ready(const std::string& status_path, const std::vector<int>& processes = {});
bool is_ready(const std::string& status_path);
// The processes that were marked, by rank; none before.
std::vector<int> marked_processes(const std::string& status_path);

// What rank 0 says of the time that the ranks need to heed a request to stop.
struct StopTime {
  double seconds = 0;  // the longest time between two moments at which they look for one
  bool saves = false;  // they are writing a checkpoint, and look for none before it is whole

  bool operator==(const StopTime&) const = default;
};
void write_stop_time(const std::string& status_path, const StopTime& time);
// All zero if it has said nothing.
StopTime read_stop_time(const std::string& status_path);

// Rank 0 writes the path of the run's log, into which a supervisor on its host then logs too; "" where it has not.
void write_log_path(const std::string& status_path, const std::string& log_path);
std::string read_log_path(const std::string& status_path);

// If the supervisor is on another host, whose folder is not here, all that is written above goes to it as lines of
// standard error. Takes such lines out of a text that has come from there, and writes them beside `status_path`.
void take_notes(const std::string& status_path, std::string& text);

}  // namespace trainctl
