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
// The ranks' status decides; without it what mpirun's messages report, in the user's terms; where these say nothing
// known, their first words. `mpirun_code` is what mpirun returned, 128 + n where signal n killed it.
RankStatus final_status(const std::optional<RankStatus>& status, const MpirunReport& report,
                        const std::string& messages, int mpirun_code);

}  // namespace trainctl
