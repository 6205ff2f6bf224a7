// Reports of the ranks to their supervisor, through files: how the run ended, and its progress.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/error.h"

namespace trainctl {

// The rank that a failure is about, as far as the reporting rank knows it.
struct FailedRank {
  std::optional<int> rank = {};
  std::string host = {};
  std::optional<std::int64_t> step = {};  // number of training steps that were done
  bool is_silent = false;                 // it did not answer the reporting rank

  bool operator==(const FailedRank&) const = default;
};

struct RankStatus {
  int exit_code = 0;                    // 0: success
  std::string message = {};             // for the user; empty after success
  std::vector<Diagnostic> errors = {};  // see Failure
  FailedRank failed = {};

  bool operator==(const RankStatus&) const = default;
};

enum class StatusWritten {
  yes,                // the supervisor will print the message
  another_was_first,  // another rank's message comes first, and nobody prints this one
  unreachable,        // the supervisor is on another host, or there is none: the rank prints its message
};

// Writes the status atomically. Only the first status counts: rank 0 writes one at the end of every run; before that,
// any rank that ends the others does. With an empty path the result is `unreachable`. A supervisor on another host
// receives everything except the message and the errors (see take_notes()).
StatusWritten write_status(const std::string& path, const RankStatus& status);

// The status that a rank has written; empty if there is none.
std::optional<RankStatus> read_status(const std::string& path);

// Called by rank 0 when all ranks handle requests to stop (they install handlers before MPI_Init, which waits for all):
// from now on the supervisor relays requests. `processes`: the process id of each rank on its host.
void mark_ready(const std::string& status_path, const std::vector<int>& processes = {});
bool is_ready(const std::string& status_path);
// The processes that mark_ready() has written, one for each rank; empty before.
std::vector<int> marked_processes(const std::string& status_path);

// The time that the ranks need to react to a request to stop, as rank 0 reports it.
struct StopTime {
  double seconds = 0;  // the longest time between two checks for a request
  bool saves = false;  // they are writing a checkpoint, and do not check before it is complete

  bool operator==(const StopTime&) const = default;
};
void write_stop_time(const std::string& status_path, const StopTime& time);
// Returns the reported time; all zero if there is none.
StopTime read_stop_time(const std::string& status_path);

// Called by rank 0 to report the number of training steps that are done.
void write_step(const std::string& status_path, std::int64_t step);
std::optional<std::int64_t> read_step(const std::string& status_path);

// Called by rank 0 to report the path of the run's log, to which a supervisor on its host then logs, too; the read path
// is "" if none was reported.
void write_log_path(const std::string& status_path, const std::string& log_path);
std::string read_log_path(const std::string& status_path);

// If the supervisor is on another host, so that its folder does not exist here, the functions above write lines to
// standard error instead. This removes such lines from a text of standard error, and writes them as files next to
// `status_path`.
void take_notes(const std::string& status_path, std::string& text);

}  // namespace trainctl
