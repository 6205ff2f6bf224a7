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
  unreachable,        // nobody waits for it on this host: the rank prints its message, its exit code tells the rest
};

// Writes the status, whole or not at all. The first one counts: rank 0 writes one at the end of every run; before that,
// any rank that takes the others down. An empty path is unreachable.
StatusWritten write_status(const std::string& path, const RankStatus& status);

// The status that a rank has written; nothing where there is none.
std::optional<RankStatus> read_status(const std::string& path);

// Rank 0 marks that all ranks handle requests to stop (MPI_Init comes after that and waits for all): from now on the
// supervisor relays requests. `processes`: those that the ranks are, on their hosts.
void mark_ready(const std::string& status_path, const std::vector<int>& processes = {});
bool is_ready(const std::string& status_path);
// The processes that were marked, by rank; none before.
std::vector<int> marked_processes(const std::string& status_path);

// Rank 0 writes the path of the run's log, into which the supervisor then logs too; "" where it has not.
void write_log_path(const std::string& status_path, const std::string& log_path);
std::string read_log_path(const std::string& status_path);

}  // namespace trainctl
