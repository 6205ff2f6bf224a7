// How a run ended, told by the ranks to their supervisor through a file.
#pragma once

#include <optional>
#include <string>

#include "core/base/failure.h"

namespace trainctl {

// An exit code of 0 is success.
using RankStatus = Failure;

enum class StatusLeft {
  yes,                // the supervisor will print the message
  another_was_first,  // this rank's message is an echo: nobody prints it
  unreachable,        // nobody waits for it on this host: the rank prints its message, its exit code tells the rest
};

// Leaves the status, whole or not at all. The first one counts: rank 0 leaves one at the end of every run; before that,
// any rank that takes the others down. An empty path is unreachable.
StatusLeft leave_status(const std::string& path, const RankStatus& status);

// Nothing where no rank has left one.
std::optional<RankStatus> read_status(const std::string& path);

// Rank 0 says that all ranks await requests to stop (MPI_Init comes after that and waits for all): from now on the
// supervisor relays them.
void say_ready(const std::string& status_path);
bool said_ready(const std::string& status_path);

// Rank 0 says where the run's log is, so that the supervisor's words reach it; "" where it has not.
void say_log(const std::string& status_path, const std::string& log_path);
std::string said_log(const std::string& status_path);

}  // namespace trainctl
