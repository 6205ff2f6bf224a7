// How a run ended, from what its ranks and mpirun have left.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "parallel/launch/status.h"

namespace trainctl {

// The cause that mpirun names when it takes a run down.
struct MpirunReport {
  std::optional<int> rank;       // that ended first
  std::optional<int> exit_code;  // its exit code or that of its MPI_Abort
  std::optional<int> signal;     // that killed it
  std::string host;              // where, or the host that was lost
  bool host_lost = false;
  bool host_unreachable = false;  // one that mpirun does not name
};

// Finds the first cause in mpirun's own messages (OpenMPI 4).
MpirunReport read_report(std::string_view messages);

// What ran out, in words of MPI, PMIx or the loader: processes, open files, space or memory. Nothing where they name
// none.
std::optional<RankStatus> find_shortage(const std::string& text);

// The status that the supervisor ends with; its message is empty where the user has read it already.
// The ranks' status decides; without it mpirun's messages, in the user's terms; where these say nothing known, their
// first words. `mpirun_code` is what mpirun returned, 128 + n where signal n killed it.
RankStatus final_status(const std::optional<RankStatus>& status, const std::string& messages, int mpirun_code);

}  // namespace trainctl
