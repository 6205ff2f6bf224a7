// How a run ended, from what its ranks and mpirun have left.
#pragma once

#include <optional>
#include <string>

#include "parallel/launch/mpirun/mpirun.h"
#include "parallel/launch/status.h"

namespace trainctl {

// What ran out, in words of MPI, PMIx or the loader: processes, open files, space or memory. Nothing where they name
// none.
std::optional<RankStatus> find_shortage(const std::string& text);

// The status that the supervisor ends with; its message is empty where the user has read it already.
// The ranks' status decides; without it what mpirun's messages report, in the user's terms; if these say nothing
// known, their first words. Without a status a run has failed, even if mpirun ends with code 0. `mpirun_code` is what
// mpirun returned, 128 + n where signal n killed it.
RankStatus final_status(const std::optional<RankStatus>& status, const MpirunReport& report,
                        const std::string& messages, int mpirun_code);

// Whether a run that was asked to stop has ended since its ranks did not train yet: one that was asked before it trains
// ends at once, with exit code 75, and its launcher then ends the others.
bool stopped_unstarted(const std::optional<RankStatus>& status, const MpirunReport& report, int mpirun_code);

// "; the newest checkpoint is PATH", or that there is none, for a run whose log has this path; "" for "".
std::string newest_checkpoint(const std::string& log_path);

}  // namespace trainctl
