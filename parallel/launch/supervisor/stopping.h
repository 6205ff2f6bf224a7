// What a request to stop does to the ranks, and when: pure functions of the time, which a supervisor asks again and
// again.
#pragma once

#include <chrono>
#include <optional>

#include "parallel/launch/ranks/status.h"

namespace trainctl {

// What was asked of a supervisor so far. This outlives the attempts to run the ranks.
struct StopRequests {
  using Clock = std::chrono::steady_clock;

  std::optional<Clock::time_point> asked;  // when the first request came
  int asked_by = 0;                        // its signal: SIGINT is a user's Ctrl-C
  std::optional<Clock::time_point> again;  // when a later request came that wants the end soon
  bool at_once = false;                    // a request wants the end at once
};

// Notes a signal that asks to stop. A second SIGINT wants the end at once. Any other second signal within 2 s is the
// same request, since whatever signals all processes of a job does so in several ways; later it ends the ranks, unless
// they write a checkpoint, which then has as long as a stop.
void note_request(StopRequests& requests, int signal, StopRequests::Clock::time_point now);

// What a supervisor knows of the ranks that it is to stop.
struct AskedRanks {
  using Clock = StopRequests::Clock;

  Clock::time_point started;  // when mpirun was
  bool sees_ranks = true;     // rank 0 is on this host, and says when the ranks are ready
  bool ready = false;         // all ranks handle a request
  bool relayed = false;       // they have been sent it
  // What rank 0 has said last of the time that ranks need, and when that changed.
  StopTime needs;
  std::optional<Clock::time_point> said;
  std::chrono::milliseconds patience{0};  // cluster.timeout; 0: for ever
};

enum class StopAction {
  wait,
  relay,          // the ranks are to be asked
  end_unstarted,  // the ranks have trained nothing: they are ended
  end_at_once,    // the user wants to wait no longer
  end_late        // the ranks have not stopped in time
};

// SLURM's KillWait and Kubernetes' terminationGracePeriodSeconds are 30 s: a stop ends before that. Ranks of which one
// step takes long have twice that step's time instead, those that write a checkpoint `patience`, at least a minute.
std::chrono::milliseconds time_to_stop(const StopRequests& requests, const AskedRanks& ranks);

StopAction stop_action(const StopRequests& requests, const AskedRanks& ranks, AskedRanks::Clock::time_point now);

}  // namespace trainctl
