// Decides how and when a request to stop affects the ranks. A supervisor calls these pure functions of the time
// repeatedly.
#pragma once

#include <chrono>
#include <optional>

#include "parallel/launch/ranks/status.h"

namespace trainctl {

// The requests to stop that a supervisor has received. They persist across all attempts to run the ranks.
struct StopRequests {
  using Clock = std::chrono::steady_clock;

  std::optional<Clock::time_point> asked;  // time of the first request
  int asked_by = 0;                        // signal of the first request: SIGINT is a user's Ctrl-C
  std::optional<Clock::time_point> again;  // time of a later request that asks for an earlier end
  bool at_once = false;                    // whether a request asks for an immediate end
};

// Records a signal that asks to stop. A second SIGINT asks for an immediate end. Any other second signal within 2 s
// counts as the same request, since a program that signals all processes of a job often sends several signals. After 2
// s it ends the ranks, unless they write a checkpoint, for which they have the usual time of a stop.
void note_request(StopRequests& requests, int signal, StopRequests::Clock::time_point now);

// The least times that ranks have to stop.
struct StopLimits {
  std::chrono::milliseconds usual{20'000};  // also after a later request
  std::chrono::milliseconds save{60'000};   // for ranks that write a checkpoint
};

// The state of the ranks that a supervisor has to stop.
struct AskedRanks {
  using Clock = StopRequests::Clock;

  Clock::time_point started;  // time when mpirun was started
  bool sees_ranks = true;     // whether rank 0 is on this host and reports when the ranks are ready
  bool ready = false;         // whether all ranks handle requests
  bool relayed = false;       // whether the request was sent to the ranks
  // The time that ranks need, as last reported by rank 0, and the time when it changed.
  StopTime needs;
  std::optional<Clock::time_point> needs_changed;
  std::chrono::milliseconds patience{0};  // cluster.timeout; 0: no limit
  StopLimits least = {};
};

// What a supervisor does now because of the requests to stop.
enum class StopAction {
  wait,
  relay,          // ask the ranks to stop
  end_unstarted,  // end the ranks, which have not trained yet
  end_at_once,    // end the ranks, since the user does not want to wait
  end_late        // end the ranks, which have not stopped in time
};

// Returns the time that the ranks have to stop. It is less than 30 s, the default of SLURM's KillWait and of
// Kubernetes' terminationGracePeriodSeconds. If a step takes long, it is twice the time of this step; if ranks write a
// checkpoint, it is `patience`, but at least `least.save`.
std::chrono::milliseconds time_to_stop(const StopRequests& requests, const AskedRanks& ranks);

// Returns what to do at the time `now`.
StopAction stop_action(const StopRequests& requests, const AskedRanks& ranks, AskedRanks::Clock::time_point now);

}  // namespace trainctl
