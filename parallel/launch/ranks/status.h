// How a run ended, told by the ranks to their supervisor through a file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/error.h"

namespace trainctl {

// The rank that a failure is about, as far as the one that tells of it knows.
struct FailedRank {
  std::optional<int> rank = {};
  std::string host = {};
  std::optional<std::int64_t> step = {};  // steps of training that were done
  bool is_silent = false;                 // it did not answer the one that tells

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
  another_was_first,  // this rank's message is an echo: nobody prints it
  unreachable,        // the supervisor is on another host, or there is none: the rank prints its message
};

// Writes the status, whole or not at all. The first one counts: rank 0 writes one at the end of every run; before that,
// any rank that takes the others down. An empty path is unreachable. To a supervisor on another host goes all but the
// message and the errors (see take_notes()).
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

// Rank 0 says how many steps of training are done.
void write_step(const std::string& status_path, std::int64_t step);
std::optional<std::int64_t> read_step(const std::string& status_path);

// Rank 0 writes the path of the run's log, into which a supervisor on its host then logs too; "" where it has not.
void write_log_path(const std::string& status_path, const std::string& log_path);
std::string read_log_path(const std::string& status_path);

// If the supervisor is on another host, whose folder is not here, all that is written above goes to it as lines of
// standard error. Takes such lines out of a text that has come from there, and writes them beside `status_path`.
void take_notes(const std::string& status_path, std::string& text);

}  // namespace trainctl
