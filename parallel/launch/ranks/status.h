// Reports of the ranks to their supervisor, through files: how the run ended, and its progress.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/error.h"

namespace trainctl {

// The rank that a failure is about; values that the reporting rank does not know are empty.
struct FailedRank {
  std::optional<int> rank = {};
  std::string host = {};
  std::optional<std::int64_t> step = {};  // number of training steps that were done
  bool is_silent = false;                 // whether the rank did not answer the reporting rank

  bool operator==(const FailedRank&) const = default;
};

struct RankStatus {
  int exit_code = 0;                    // 0: success
  std::string message = {};             // message for the user; empty after success
  std::vector<Diagnostic> errors = {};  // see Failure
  FailedRank failed = {};

  bool operator==(const RankStatus&) const = default;
};

// Whether the supervisor will print the message of a status.
enum class StatusWritten {
  yes,                // the supervisor will print the message
  another_was_first,  // the status of another rank counts, so that this message is not printed
  unreachable,        // there is no supervisor on this host: the rank prints its message
};

// Writes the status atomically. Only the first status counts: rank 0 writes a status at the end of every run; before
// that, any rank that ends the other ranks writes it. But an error of the config, the data, divergence or resources
// replaces Error{peer}, whose rank has only noticed that another rank was gone. With an empty path the result is
// `unreachable`. A supervisor on another host receives the status without the message and the errors (see
// take_notes()).
StatusWritten write_status(const std::string& path, const RankStatus& status);

// Returns the status that a rank has written; empty if no rank has written one.
std::optional<RankStatus> read_status(const std::string& path);

// Called by rank 0 when all ranks handle requests to stop: from now on the supervisor relays requests. Ranks install
// their handlers before MPI_Init, which waits for all ranks. `processes`: the process id of each rank on its host.
void mark_ready(const std::string& status_path, const std::vector<int>& processes = {});
bool is_ready(const std::string& status_path);
// Returns the process ids that mark_ready() has written, one for each rank; empty before mark_ready().
std::vector<int> marked_processes(const std::string& status_path);

// The time that the ranks need to react to a request to stop, and whether they can save their state, as rank 0 reports
// it.
struct StopTime {
  double seconds = 0;  // the longest time between two checks for a request
  bool saves = false;  // the ranks are writing a checkpoint, and check again when it is complete
  bool fails = false;  // the last checkpoint could not be written

  bool operator==(const StopTime&) const = default;
};
void write_stop_time(const std::string& status_path, const StopTime& time);
// Returns the reported time; StopTime{} if no time was reported.
StopTime read_stop_time(const std::string& status_path);

// Called by the supervisor before it asks the ranks to stop in order to start them again with another number of ranks:
// the run then goes on, and rank 0 does not report its end. A rank 0 on another host does not know of it.
void mark_resizing(const std::string& status_path);
bool is_resizing(const std::string& status_path);

// A request for another number of ranks that the supervisor has refused.
struct RefusedResize {
  int ranks = 0;
  std::string reason = {};

  bool operator==(const RefusedResize&) const = default;
};
// Called by the supervisor, so that rank 0 records it. A rank 0 on another host does not learn of it.
void write_refused_resize(const std::string& status_path, const RefusedResize& refused);
// Called by rank 0. Returns the requests that were refused in this attempt, the oldest first, without the first
// `known`.
std::vector<RefusedResize> read_refused_resizes(const std::string& status_path, std::size_t known = 0);

// Called by rank 0 to report the number of training steps that are done.
void write_step(const std::string& status_path, std::int64_t step);
std::optional<std::int64_t> read_step(const std::string& status_path);

// Called by rank 0 to report the path of the run's log; a supervisor on the same host then also logs to it.
// read_log_path() returns "" if no path was reported.
void write_log_path(const std::string& status_path, const std::string& log_path);
std::string read_log_path(const std::string& status_path);

// If the supervisor is on another host, so that its folder does not exist here, the functions above write lines to
// standard error instead. take_notes() removes such lines from a text of standard error, and writes them as files next
// to `status_path`.
void take_notes(const std::string& status_path, std::string& text);

}  // namespace trainctl
