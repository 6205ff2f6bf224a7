// A note in the folder of the flight records that tells the agent of a host which copies of the run's state its ranks
// keep in shared memory, so that the agent removes them if the supervisor is lost.
#pragma once

#include <string>

namespace trainctl {

// Called by a rank that has taken the lock of the folder of copies. Without a supervisor that watches the ranks, does
// nothing.
void note_copies(const std::string& copies);

// Called by the agent, and by a supervisor that cannot reach the run directory: removes the copies that a rank of this
// host has noted in the folder of the flight records, unless a later start of the run has taken them over.
void remove_noted_copies(const std::string& flight_folder);

}  // namespace trainctl
