// Queues a SLURM job again that goes on without the node on which its batch script, and the supervisor in it, ran.
#pragma once

#include <functional>

namespace trainctl {

class Variables;
struct JobState;

// Whether SLURM has taken the node of the batch script from a running job, which it leaves on its other nodes if the
// job asks for --no-kill. `restarts`: how often the job had been queued again when its present processes were started.
bool has_lost_script(const JobState& job, int restarts);

// Called on another node of the job, by a process that no longer hears from the supervisor. Asks SLURM about the job,
// less and less often, until it is queued again, ends or has been started anew, or until `goes_on` returns false. As
// soon as has_lost_script(), queues it again, which also ends this process. Returns at once outside a SLURM job.
void requeue_if_script_is_lost(const Variables& variables, const std::function<bool()>& goes_on);

}  // namespace trainctl
